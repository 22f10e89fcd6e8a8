# Java with JJava, the maintained successor of IJava: JShell behind the Jupyter protocol.
source /recipe/lib/steps.sh

# Its alternatives want a folder for manual pages, though there are none.
mkdir -p /usr/share/man/man1
install_packages openjdk-21-jdk-headless
ln -sfn "$(basename "$(dirname "$(dirname "$(readlink -f /usr/bin/javac)")")")" /usr/lib/jvm/default-java
install_wheels /recipe/wheels/java.txt
rm -f /usr/local/share/jupyter/kernels/java/jjava-launcher.jar
place usr/local/share/jupyter/kernels/java
