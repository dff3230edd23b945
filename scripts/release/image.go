package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// userID is the user and group of the service in the image: the usual number for programs that need no privileges.
const userID = 65532

// image makes the target's container image: an archive with an OCI image layout, which also contains what `docker load` of older Docker versions reads. The static binary needs no other program.
func (t *target) image() (string, error) {
	program, err := os.ReadFile(t.binary)
	if err != nil {
		return "", err
	}
	licence, err := os.ReadFile(t.source + "/LICENSE")
	if err != nil {
		return "", err
	}
	dir := func(name string, mode os.FileMode, uid int) file { return file{name: name, mode: mode, uid: uid} }
	root := []file{
		dir("etc", 0o755, 0), dir("etc/ssl", 0o755, 0), dir("etc/ssl/certs", 0o755, 0), dir("usr", 0o755, 0), dir("usr/bin", 0o755, 0), dir("usr/share", 0o755, 0), dir("usr/share/licenses", 0o755, 0),
		dir("usr/share/licenses/muster", 0o755, 0), dir("tmp", os.ModeSticky|0o777, 0), dir("var", 0o755, 0), dir("var/lib", 0o755, 0), dir("var/lib/muster", 0o700, userID), dir("var/lib/muster-agent", 0o700, userID),
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nmuster:x:65532:65532:Muster:/var/lib/muster:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nmuster:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "usr/bin/muster", mode: 0o755, content: program},
		{name: "usr/share/licenses/muster/LICENSE", mode: 0o644, content: licence},
		{name: "usr/share/licenses/muster/THIRD-PARTY-LICENSES.txt", mode: 0o644, content: t.licences},
	}
	var plain, layer bytes.Buffer
	if err := writeTar(&plain, sorted(root), t.time); err != nil {
		return "", err
	}
	if err := writeTarGz(&layer, root, t.time); err != nil {
		return "", err
	}
	layout := layout{blobs: map[string][]byte{}}
	labels := map[string]string{
		"org.opencontainers.image.title": "Muster", "org.opencontainers.image.version": t.version, "org.opencontainers.image.created": t.time.Format(time.RFC3339),
		"org.opencontainers.image.source": "https://github.com/musterhq/muster", "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.revision": t.revision,
	}
	config := layout.add("application/vnd.oci.image.config.v1+json", asJSON(map[string]any{
		"created": t.time.Format(time.RFC3339), "architecture": t.arch, "os": t.os,
		"config": map[string]any{
			"User": "65532:65532", "Entrypoint": []string{"/usr/bin/muster"}, "Cmd": []string{"serve"}, "WorkingDir": "/var/lib/muster", "Labels": labels, "StopSignal": "SIGTERM",
			"Env":          []string{"PATH=/usr/bin", "MUSTER_DATA=/var/lib/muster", "MUSTER_LISTEN=:8080"},
			"ExposedPorts": map[string]any{"8080/tcp": struct{}{}}, "Volumes": map[string]any{"/var/lib/muster": struct{}{}},
			// Docker reads this; OCI does not define it.
			"Healthcheck": map[string]any{"Test": []string{"CMD", "/usr/bin/muster", "health"}, "Interval": 15 * time.Second, "Timeout": 6 * time.Second, "StartPeriod": 2 * time.Minute, "Retries": 4},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{sha(plain.Bytes())}},
		"history": []any{map[string]any{"created": t.time.Format(time.RFC3339), "created_by": "scripts/release"}},
	}))
	packed := layout.add("application/vnd.oci.image.layer.v1.tar+gzip", layer.Bytes())
	manifest := layout.add("application/vnd.oci.image.manifest.v1+json", asJSON(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{packed}, "annotations": labels,
	}))
	manifest["platform"] = map[string]string{"os": t.os, "architecture": t.arch}
	manifest["annotations"] = map[string]string{"org.opencontainers.image.ref.name": t.version, "io.containerd.image.name": "docker.io/library/muster:" + t.version}
	list := []file{
		dir("blobs", 0o755, 0), dir("blobs/sha256", 0o755, 0),
		{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{name: "index.json", mode: 0o644, content: asJSON(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{manifest}})},
		{name: "manifest.json", mode: 0o644, content: asJSON([]any{map[string]any{
			"Config": blobName(config["digest"].(string)), "RepoTags": []string{"muster:" + t.version}, "Layers": []string{blobName(packed["digest"].(string))},
		}})},
	}
	for digest, content := range layout.blobs {
		list = append(list, file{name: blobName(digest), mode: 0o644, content: content})
	}
	return t.create(t.name()+".oci.tar", func(w io.Writer) error { return writeTar(w, sorted(list), t.time) })
}

// layout collects the blobs of an image.
type layout struct{ blobs map[string][]byte }

// add returns the descriptor of a blob.
func (l *layout) add(mediaType string, content []byte) map[string]any {
	digest := sha(content)
	l.blobs[digest] = content
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(content)}
}

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobName(digest string) string { return "blobs/sha256/" + digest[len("sha256:"):] }

// asJSON sorts the keys of maps.
func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // these values can always be encoded
	}
	return text
}

// authorities returns Mozilla's certificate authorities, which the service trusts when it calls webhooks, identity providers and object stores.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // Go checks such limits, and a file of certificates does not have them
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer never fails
		}
	}
	return b.Bytes()
}
