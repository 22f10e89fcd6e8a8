# A root file system as an OCI image layout: one layer, one configuration, one manifest. Sourced by images/build.

# blob FOLDER FILE: moves FILE to its name; prints "DIGEST SIZE".
blob() {
  local digest size
  digest=$(sha256sum "$2" | cut -d' ' -f1)
  size=$(stat -c %s "$2")
  mv "$2" "$1/blobs/sha256/$digest"
  printf 'sha256:%s %s\n' "$digest" "$size"
}

json_strings() {  # the arguments as a JSON array; our own texts: no control characters in them
  local out='' word
  for word in "$@"; do
    word=${word//\\/\\\\}
    out+="${out:+,}\"${word//\"/\\\"}\""
  done
  printf '[%s]' "$out"
}

# write_layout ROOT FOLDER. Uses: image, entrypoint, working_dir, name, here, epoch.
write_layout() {
  local root=$1 to=$2 layer layer_size config config_size manifest manifest_size env=() arch created
  mkdir -p "$to/blobs/sha256"
  # Sorted, with one time for all: equal content makes an equal layer.
  tar -C "$root" --sort=name --numeric-owner --mtime="@$epoch" --clamp-mtime --format=posix \
    --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cf "$to/layer" .
  read -r layer layer_size < <(blob "$to" "$to/layer")
  while IFS= read -r line; do [[ -z $line || $line == \#* ]] || env+=("$line"); done <"$here/$name/environment"
  case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
  created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
  printf '{"created":"%s","architecture":"%s","os":"linux","config":{"Env":%s,"Entrypoint":%s,"WorkingDir":"%s"},"rootfs":{"type":"layers","diff_ids":["%s"]}}' \
    "$created" "$arch" "$(json_strings "${env[@]}")" "$(json_strings "${entrypoint[@]}")" "$working_dir" "$layer" >"$to/config"
  read -r config config_size < <(blob "$to" "$to/config")
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"%s","size":%s}]}' \
    "$config" "$config_size" "$layer" "$layer_size" >"$to/manifest"
  read -r manifest manifest_size < <(blob "$to" "$to/manifest")
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"%s","size":%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
    "$manifest" "$manifest_size" "$image" >"$to/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$to/oci-layout"
}
