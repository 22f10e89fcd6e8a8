/* The compiled contracts (OSB_DESCRIPTORS is made by protoc), for reflection. */
    .section .rodata
    .global osb_descriptors
    .global osb_descriptors_end
osb_descriptors:
    .incbin OSB_DESCRIPTORS
osb_descriptors_end:
    .byte 0
    .section .note.GNU-stack,"",@progbits
