package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// buildRoot makes a directory with a game server of several files.
func buildRoot(t *testing.T, payload int) string {
	t.Helper()
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "bin", "server"), []byte("#!/bin/sh\n"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "levels.pak"), noise(payload), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "empty"), nil, 0o644))
	return root
}

// noise returns incompressible bytes.
func noise(size int) []byte {
	content := make([]byte, size)
	x := uint64(88172645463325252)
	for i := range content {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		content[i] = byte(x)
	}
	return content
}

func (s *service) buildStatus(id string) types.Build {
	s.t.Helper()
	out, err := s.client.DescribeBuild(s.t.Context(), &gamelift.DescribeBuildInput{BuildId: &id})
	must(s.t, err)
	return *out.Build
}

// settled waits until the upload of a build was checked.
func (s *service) settled(id string) (b types.Build) {
	s.t.Helper()
	waittest.Until(s.t, "the upload is checked", func() bool {
		b = s.buildStatus(id)
		return b.Status != types.BuildStatusInitialized
	})
	return b
}

// s3At lets an unmodified AWS CLI before 2.13, such as Debian's, which takes no endpoint for S3 from its environment, reach the service's store: the CLI reads
// where S3 is from a file in the home directory.
const s3At = `{"version": "1.0", "parameters": {"Bucket": {"type": "String"}, "Region": {"type": "String", "builtIn": "AWS::Region"}}, "rules": [{
	"conditions": [{"fn": "isSet", "argv": [{"ref": "Bucket"}]}], "type": "endpoint",
	"endpoint": {"url": "ENDPOINT/{Bucket}", "properties": {"authSchemes": [{"name": "sigv4", "signingName": "s3", "signingRegion": "us-east-1", "disableDoubleEncoding": true}]}}
}]}`

// The high-level command of the AWS CLI, unmodified: it creates the build, packs the directory, and uploads it in one request, or in parts from 8 MiB on.
func TestUploadBuildWithTheCLI(t *testing.T) {
	t.Parallel()
	s := startService(t)
	home := t.TempDir()
	models := filepath.Join(home, ".aws", "models", "s3", "2006-03-01")
	must(t, os.MkdirAll(models, 0o755))
	must(t, os.WriteFile(filepath.Join(models, "endpoint-rule-set-1.json"), []byte(strings.Replace(s3At, "ENDPOINT", s.url(), 1)), 0o644))
	for name, size := range map[string]int{"one request": 1 << 20, "in parts": 20 << 20} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			cmd := exec.Command(debianAWS, "--region", region, "gamelift", "upload-build", "--name", "arena", "--build-version", "1.4",
				"--build-root", buildRoot(t, size), "--operating-system", "AMAZON_LINUX_2023", "--server-sdk-version", "5.4.0", "--endpoint-url", s.url())
			cmd.Env = cleanEnvironment("AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "HOME="+home, "AWS_MAX_ATTEMPTS=1", "LC_ALL=C.UTF-8",
				"AWS_ENDPOINT_URL_S3="+s.url())
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("Successfully uploaded")) {
				t.Fatalf("upload-build: %v\n%s", err, out)
			}
			b := s.settled(strings.TrimSpace(string(out[bytes.LastIndex(out, []byte("build-")):])))
			if b.Status != types.BuildStatusReady || *b.SizeOnDisk != int64(size+len("#!/bin/sh\n")) || *b.ServerSdkVersion != "5.4.0" || aws.ToString(b.Version) != "1.4" {
				t.Errorf("got %+v", b)
			}
		})
	}
}

// muster build push sends only the changes of a second version.
func TestPushBuild(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t)
	s.client = admin
	root := buildRoot(t, 10<<20)
	push := func(version string) string {
		t.Helper()
		return s.command("build", "push", root, "--data", s.data, "--listen", s.address, "--name", "arena", "--version", version)
	}
	if out := push("1"); !strings.Contains(out, "is READY: 3 files, 10.0 MiB, of which 10.0 MiB were sent") {
		t.Errorf("got %s", out)
	}
	must(t, os.WriteFile(filepath.Join(root, "new"), []byte("a new file"), 0o644))
	if out := push("2"); !strings.Contains(out, "of which 0.0 MiB were sent") {
		t.Errorf("got %s", out)
	}
	if out := s.command("build", "list", "--data", s.data, "--listen", s.address); strings.Count(out, "READY") != 2 {
		t.Errorf("got %s", out)
	}
	if out, err := s.commandFails("build", "push", t.TempDir(), "--data", s.data, "--listen", s.address); err == nil || !strings.Contains(out, "no files") {
		t.Errorf("got %v: %s", err, out)
	}
}
