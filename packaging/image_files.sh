#!/usr/bin/env bash
# Lays out what the image consists of: OUT/files and OUT/state. Runs on Debian, in the build stage of the Dockerfile.
# The libraries are those that the loader takes here, each as Debian built it; what they are called, their versions and
# licences go along, so that scanners and people find them. Usage: packaging/image_files.sh OUT
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: packaging/image_files.sh OUT" >&2; exit 2; }
out=$1 root=$1/files
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=$(packaging/date.sh)
export SOURCE_DATE_EPOCH
umask 022
beside=(tzdata ca-certificates)

packaging/deb.sh "$out/deb"
mkdir -p "$root"/{etc/ssl/certs,proc,sys,dev,tmp,usr/lib64,usr/bin,usr/share/doc,var/lib/dpkg/status.d} "$out/state"
ln -s usr/lib usr/lib64 usr/bin "$root"
chmod 1777 "$root/tmp"
dpkg-deb -x "$out"/deb/preheat_*.deb "$out/unpacked"
cp -P "$out"/unpacked/usr/bin/* "$root/usr/bin"
mkdir "$root/usr/share/doc/preheat"
cp "$out/unpacked/usr/share/doc/preheat/copyright" LICENSE "$root/usr/share/doc/preheat"

libraries() {
	ldd "$root/usr/bin/preheat" | sed -n 's|.*=> \(/[^ ]*\) (.*|\1|p; s|^\t\(/[^ ]*\) (.*|\1|p'
}
while read -r library; do
	case $library in /usr/*) place=$library ;; *) place=/usr$library ;; esac
	install -D -m 755 "$(readlink -f "$library")" "$root$place"
done < <(libraries)

cp -a /usr/share/zoneinfo "$root/usr/share"
rm -rf "$root"/usr/share/zoneinfo/{right,posix}
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
cp -L /etc/os-release "$root/etc"
printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/var/lib/preheat:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"

bill=$root/usr/share/doc/preheat/preheat.spdx.json
python3 -B packaging/sbom.py --image "$root/usr/bin/preheat" "${beside[@]}" >"$bill"
while read -r package; do
	dpkg-query -s "$package" | grep -vE '^(Status|Conffiles| )' >"$root/var/lib/dpkg/status.d/$package"
	install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
done < <(sed -n 's|.*"pkg:deb/debian/\([^@]*\)@.*|\1|p' "$bill")
find "$out" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
