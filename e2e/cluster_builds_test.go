package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/buildfetch"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/sessionlogs"
	"github.com/musterhq/muster/internal/waittest"
)

// manifestOf returns the manifest of a directory and its digest.
func manifestOf(t *testing.T, root string) (d buildfiles.Digest, m *buildfiles.Manifest) {
	t.Helper()
	scanned, err := buildfiles.Scan(root)
	must(t, err)
	text, err := scanned.Manifest.Encode()
	must(t, err)
	return buildfiles.DigestOf(text), &scanned.Manifest
}

// stored reports whether the disk of a node has all of a build.
func stored(t *testing.T, n *service, manifest buildfiles.Digest, m *buildfiles.Manifest) bool {
	t.Helper()
	all := true
	has := func(d buildfiles.Digest) {
		_, err := os.Stat(filepath.Join(n.data, "builds", "parts", d.String()[:2], d.String()))
		all = all && err == nil
	}
	has(manifest)
	_ = m.Parts(func(p buildfiles.Part) error { has(p.Digest); return nil })
	return all
}

// fetched fetches a build from a node as a host does, and compares it with its source directory.
func fetched(t *testing.T, n *service, root string) {
	t.Helper()
	digest, m := manifestOf(t, root)
	secret, err := identity.ReadCellSecret(n.data, nil)
	must(t, err)
	builds := buildfetch.Builds{Dir: t.TempDir()}
	url := n.url() + builddoor.FetchPrefix + digest.String() + "?ticket=" + secret.BuildTicket(digest.String(), time.Now().Add(time.Hour))
	dir, err := builds.Fetch(t.Context(), url, digest)
	must(t, err)
	for _, f := range m.Files {
		want, err := os.ReadFile(filepath.Join(root, f.Path))
		must(t, err)
		got, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s from %s: %d bytes, %v; want %d", f.Path, n.address, len(got), err, len(want))
		}
	}
}

// A build that was pushed to one node survives the loss of that node from the moment at which it is READY. Nodes that were down and nodes that join copy it.
func TestClusterBuilds(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	root := buildRoot(t, 20<<20)
	out := nodes[1].command("build", "push", root, "--data", nodes[1].data, "--listen", nodes[1].address, "--name", "arena")
	nodes[1].kill()
	if !strings.Contains(out, "is READY: 3 files, 20.0 MiB, of which 20.0 MiB were sent") {
		t.Errorf("got %s", out)
	}
	digest, m := manifestOf(t, root)
	fetched(t, nodes[2], root)
	fetched(t, nodes[0], root)
	waittest.Until(t, "both survivors to have the build", func() bool { return stored(t, nodes[0], digest, m) && stored(t, nodes[2], digest, m) })

	// A file of another version that is damaged at one node comes from another one.
	must(t, filepath.WalkDir(filepath.Join(nodes[2].data, "builds", "parts"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != digest.String() {
			err = os.WriteFile(path, []byte("damaged"), 0o600)
		}
		return err
	}))
	nodes[2].stop()
	nodes[2].start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, nodes[2]) })
	fetched(t, nodes[2], root)

	later := joined(t, nodes[0])
	waittest.Until(t, "the node that joined to have the build", func() bool { return stored(t, later, digest, m) && ready(t, later) })

	// The second push of the same files sends nothing, at whichever node.
	if out := later.command("build", "push", root, "--data", later.data, "--listen", later.address, "--name", "arena"); !strings.Contains(out, "of which 0.0 MiB were sent") {
		t.Errorf("got %s", out)
	}
}

// zipOf packs a directory.
func zipOf(t *testing.T, root string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	must(t, z.AddFS(os.DirFS(root)))
	must(t, z.Close())
	return b.Bytes()
}

// uploader returns an S3 client with the credentials of one build, at one node.
func uploader(n *service, key *types.AwsCredentials) *s3.Client {
	url := n.url()
	return s3.New(s3.Options{Region: region, BaseEndpoint: &url, RetryMaxAttempts: 10,
		Credentials: credentials.NewStaticCredentialsProvider(*key.AccessKeyId, *key.SecretAccessKey, *key.SessionToken)})
}

// An upload in parts reaches different nodes, as behind a load balancer, and the leader is lost in the middle of it.
func TestClusterUploadThroughAllNodes(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	root := buildRoot(t, 12<<20)
	created, err := nodes[0].client.CreateBuild(t.Context(), &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemAmazonLinux2023})
	must(t, err)
	at, key := created.StorageLocation, created.UploadCredentials
	begun, err := uploader(nodes[1], key).CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: at.Bucket, Key: at.Key})
	must(t, err)
	content := zipOf(t, root)
	half := 6 << 20
	var list s3types.CompletedMultipartUpload
	for i, part := range [][]byte{content[:half], content[half:]} {
		number := aws.Int32(int32(i + 1))
		out, err := uploader(nodes[2*i], key).UploadPart(t.Context(), &s3.UploadPartInput{ // at the leader, and at another one after its loss
			Bucket: at.Bucket, Key: at.Key, UploadId: begun.UploadId, PartNumber: number, Body: bytes.NewReader(part)})
		must(t, err)
		list.Parts = append(list.Parts, s3types.CompletedPart{PartNumber: number, ETag: out.ETag})
		if i == 0 {
			nodes[0].kill()
		}
	}
	complete := &s3.CompleteMultipartUploadInput{Bucket: at.Bucket, Key: at.Key, UploadId: begun.UploadId, MultipartUpload: &list}
	for range 2 { // the answer of the first may have been lost
		_, err = uploader(nodes[2], key).CompleteMultipartUpload(t.Context(), complete)
		must(t, err)
	}
	if b := nodes[2].settled(*created.Build.BuildId); b.Status != types.BuildStatusReady {
		t.Fatalf("got %+v", b)
	}
	nodes[0].start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, nodes[0]) })
	nodes[1].kill()
	fetched(t, nodes[0], root)
	fetched(t, nodes[2], root)

	// The node at which an upload began is gone: the client reads why. The part is small, because a client that still sends more than 256 KiB when it is refused may lose its connection before it reads.
	other, err := nodes[2].client.CreateBuild(t.Context(), &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemAmazonLinux2023})
	must(t, err)
	begun, err = uploader(nodes[0], other.UploadCredentials).CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: at.Bucket, Key: other.StorageLocation.Key})
	must(t, err)
	nodes[1].start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, nodes[1]) })
	nodes[0].kill()
	client := uploader(nodes[2], other.UploadCredentials)
	_, err = client.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: at.Bucket, Key: other.StorageLocation.Key, UploadId: begun.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader(content[:64<<10])},
		func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	if err == nil || !strings.Contains(err.Error(), "cannot be reached: try again, or begin another upload") {
		t.Errorf("got %v", err)
	}
}

// The log of a game session is at two nodes before its host gets an answer: every node serves it, also after the loss of the node that received it.
func TestClusterSessionLogs(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	game := nodes[0].prepare().dial("process-a", nodes[2].address).host(t, 1)
	_, session, _ := strings.Cut(game, ":gamesession/")
	secret, err := identity.ReadCellSecret(nodes[1].data, nil)
	must(t, err)
	elsewhere, err := sessionlogs.Open(sessionlogs.Options{Dir: t.TempDir()}) // the door makes URLs only
	must(t, err)
	door := sessionlogs.New(sessionlogs.Config{Store: elsewhere, Secret: secret, URL: nodes[1].url()})
	content := string(noise(1 << 20))
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, door.UploadURL(session), strings.NewReader(content))
	must(t, err)
	answer, err := http.DefaultClient.Do(put)
	must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("upload: %s", answer.Status)
	}
	fetch := func(n *service) {
		t.Helper()
		out, err := n.client.GetGameSessionLogUrl(t.Context(), &gamelift.GetGameSessionLogUrlInput{GameSessionId: &game})
		must(t, err)
		answer, err := http.Get(*out.PreSignedUrl)
		must(t, err)
		defer answer.Body.Close()
		got, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || string(got) != content {
			t.Errorf("the log from %s: %s, %d bytes, %v", n.address, answer.Status, len(got), err)
		}
	}
	for _, n := range nodes {
		fetch(n)
	}
	nodes[1].kill()
	fetch(nodes[0])
	fetch(nodes[2])
}

// muster logs asks any node, and the one to which the agent is connected answers.
func TestClusterLogs(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	p := nodes[0].prepare()
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "server"), []byte("#!/bin/sh\necho the server begins\nwhile [ ! -e end ]; do sleep 0.1; done\necho the server ends\n"), 0o755))
	runtime := filepath.Join(t.TempDir(), "runtime.json")
	must(t, os.WriteFile(runtime, []byte(`{"ServerProcesses":[{"LaunchPath":"server","ConcurrentExecutions":1}]}`), 0o600))
	agentState := t.TempDir()
	agent := exec.Command(musterBinary, "agent", "--server", nodes[1].url(), "--fleet", p.fleet, "--location", p.location, "--compute-name", "rack-9", "--root", root,
		"--runtime-config", runtime, "--state-dir", agentState, "--end-processes", "--kill-timeout", "1s")
	agent.Env = cleanEnvironment("AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	agent.Stdout, agent.Stderr = nodes[1].logs, nodes[1].logs
	must(t, agent.Start())
	t.Cleanup(func() {
		_ = agent.Process.Signal(os.Interrupt) // it may have ended
		_ = agent.Wait()
	})
	process := ""
	waittest.Until(t, "the agent to start a server process", func() bool {
		var state struct {
			Processes []struct {
				ID string `json:"id"`
			} `json:"processes"`
		}
		text, _ := os.ReadFile(filepath.Join(agentState, "agent.json"))
		_ = json.Unmarshal(text, &state)
		if len(state.Processes) > 0 {
			process = state.Processes[0].ID
		}
		return process != ""
	})
	id := p.fleet + "/rack-9/" + process
	for _, n := range nodes {
		waittest.Until(t, "its output at "+n.address, func() bool {
			out, err := n.commandFails("logs", id, "--data", n.data, "--listen", n.address)
			return err == nil && strings.Contains(out, "the server begins")
		})
	}
	// A follower at another node reads what is written from now on.
	follower := newOutput()
	reading := exec.Command(musterBinary, "logs", id, "-f", "--server", nodes[2].url())
	reading.Env = cleanEnvironment("AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	reading.Stdout, reading.Stderr = follower, follower
	must(t, reading.Start())
	ended := make(chan error, 1)
	go func() { ended <- reading.Wait() }()
	waittest.Until(t, "the follower to read the beginning", func() bool { return strings.Contains(follower.String(), "the server begins") })
	must(t, os.WriteFile(filepath.Join(root, "end"), nil, 0o644))
	waittest.Until(t, "the follower to read the end", func() bool { return strings.Contains(follower.String(), "the server ends") })
	if err := <-ended; err != nil {
		t.Errorf("the follower: %v: %s", err, follower.String())
	}
}
