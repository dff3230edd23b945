package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A cluster with an object store: after the loss of the node to which a build was uploaded with S3, the other nodes serve it, and none of them has it on its disk.
func TestObjectStore(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	must(t, backend.CreateBucket("games"))
	store := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(store.Close)
	keys := []string{"env", "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any"}
	place := "s3://games/muster?endpoint=" + store.URL

	nodes := startNodes(t, 3, func(cluster ...string) *service {
		n := newService(t, append(cluster, "--objects", place)...)
		n.wrap = keys
		return n
	})

	root := buildRoot(t, 12<<20)
	created, err := nodes[0].client.CreateBuild(t.Context(), &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemAmazonLinux2023})
	must(t, err)
	_, err = uploader(nodes[1], created.UploadCredentials).PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: created.StorageLocation.Bucket, Key: created.StorageLocation.Key, Body: bytes.NewReader(zipOf(t, root))})
	must(t, err)
	if b := nodes[0].settled(*created.Build.BuildId); b.Status != types.BuildStatusReady {
		t.Fatalf("got %+v", b)
	}
	nodes[1].kill()
	fetched(t, nodes[0], root)
	fetched(t, nodes[2], root)
	if out := nodes[2].command("build", "push", root, "--data", nodes[2].data, "--listen", nodes[2].address, "--name", "arena"); !strings.Contains(out, "of which 0.0 MiB were sent") {
		t.Errorf("got %s", out)
	}
	for _, n := range nodes {
		if parts, _ := filepath.Glob(filepath.Join(n.data, "builds", "parts", "*", "*")); len(parts) > 0 {
			t.Errorf("the disk of a node has %d parts", len(parts))
		}
	}
	answer, err := http.Get(store.URL + "/games?list-type=2&prefix=muster/parts/")
	must(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || strings.Count(string(text), "<Key>muster/parts/") < 3 {
		t.Errorf("the store has %s, %v", text, err)
	}
}
