package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// newSecretKey makes the binary write a key file.
func newSecretKey(t *testing.T, s *service) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret.key")
	if out := s.command("secret-key", "create", path); !strings.Contains(out, path) {
		t.Error(out)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info, err)
	}
	return path
}

// filesOf returns the content of all files in a directory, by path.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[path], err = os.ReadFile(path)
		}
		return err
	}))
	return files
}

// startRefused starts the service, which must refuse without changing the directory, and returns its output.
func startRefused(t *testing.T, s *service, args ...string) string {
	t.Helper()
	before := filesOf(t, s.data)
	out, err := s.commandFails(append([]string{"serve", "--data", s.data, "--listen", s.address, "--dev"}, args...)...)
	if err == nil {
		t.Fatalf("muster serve %s ended without an error: %s", strings.Join(args, " "), out)
	}
	after := filesOf(t, s.data)
	for path, content := range after {
		if !bytes.Equal(before[path], content) {
			t.Errorf("muster serve %s has changed %s", strings.Join(args, " "), path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("muster serve %s: %d files were there, now %d", strings.Join(args, " "), len(before), len(after))
	}
	return out
}

// A single machine gets a key file, with which commands, backups and restores work; a wrong or missing key is refused and changes nothing; the key is replaced and removed. The
// access key works all along.
func TestSecretKeyFile(t *testing.T) {
	t.Parallel()
	s := startService(t)
	id, _ := s.key("admin")
	plain, err := os.ReadFile(filepath.Join(s.data, "cell.secret"))
	must(t, err)
	key, other := newSecretKey(t, s), newSecretKey(t, s)
	if out, err := s.commandFails("secret-key", "create", key); err == nil || !strings.Contains(out, "exists already") {
		t.Errorf("over a key: %v, %s", err, out)
	}
	s.stop()

	s.args = []string{"--secret-key-file", key}
	s.start()
	if out := s.command("keys", "list", "--data", s.data, "--secret-key-file", key); !strings.Contains(out, id) {
		t.Errorf("the access key is gone: %s", out)
	}
	if out := s.command("keys", "list", "--data", s.data, "--secret-key-file", "command:/bin/cat "+key); !strings.Contains(out, id) {
		t.Errorf("with the key of a program: %s", out)
	}
	if out, _ := s.commandFails("doctor", "--data", s.data, "--secret-key-file", key, "--listen", s.address); strings.Contains(out, "no access key is known") {
		t.Errorf("the doctor cannot read the secret with its key:\n%s", out)
	}
	if out, err := s.commandFails("keys", "list", "--data", s.data); err == nil || !strings.Contains(out, "--secret-key-file") {
		t.Errorf("a command without the key: %v, %s", err, out)
	}
	examined := []string{"doctor", "--data", s.data, "--listen", s.address}
	if out, _ := s.commandFails(append(examined, "--secret-key-file", key)...); !strings.Contains(out, "nothing needs attention") {
		t.Errorf("the doctor does not ask the service: %s", out)
	}
	if out, _ := s.commandFails(examined...); !strings.Contains(out, "the service was not queried: ") || !strings.Contains(out, "--secret-key-file") {
		t.Errorf("the doctor does not say that it lacks the key: %s", out)
	}
	if out, err := s.commandFails("secret-key", "change", "--data", s.data, "--secret-key-file", key, "--to", other); err == nil || !strings.Contains(out, "muster serve") {
		t.Errorf("a change while the service runs: %v, %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "backup")
	s.command("backup", "--data", s.data, "--secret-key-file", key, "--to", file)
	s.stop()

	secret := plain[len("MUSTSEC2")+16:][:32]
	for path, content := range filesOf(t, s.data) {
		if bytes.Contains(content, secret) {
			t.Errorf("%s has the secret without encryption", path)
		}
	}
	for _, args := range [][]string{nil, {"--secret-key-file", other}} {
		if out := startRefused(t, s, args...); !strings.Contains(out, "cell.secret is encrypted with the secret key") {
			t.Errorf("started with %q: %s", args, out)
		}
	}
	if out := startRefused(t, s, "--secret-key-file", key+".none"); !strings.Contains(out, "no such file") {
		t.Errorf("with a file that is not there: %s", out)
	}
	must(t, os.Chmod(key, 0o644))
	if out := startRefused(t, s, "--secret-key-file", key); !strings.Contains(out, "chmod 600") {
		t.Errorf("with a key that others can read: %s", out)
	}
	must(t, os.Chmod(key, 0o600))

	for _, args := range [][]string{{"--verify"}, {"--verify", "--secret-key-file", other}} {
		if out, err := s.commandFails(append([]string{"restore", file}, args...)...); err == nil || !strings.Contains(out, "the secret in the backup is encrypted") {
			t.Errorf("restore %q: %v, %s", args, err, out)
		}
	}
	restored := newService(t, "--secret-key-file", key)
	restored.command("restore", file, "--data", restored.data, "--secret-key-file", key)
	restored.start()
	if out := restored.command("keys", "list", "--data", restored.data, "--secret-key-file", key); !strings.Contains(out, id) {
		t.Errorf("the access key is missing after the restore: %s", out)
	}
	restored.stop()
	startRefused(t, restored)

	s.command("secret-key", "change", "--data", s.data, "--secret-key-file", key, "--to", other)
	startRefused(t, s, "--secret-key-file", key)
	s.args = []string{"--secret-key-file", other}
	s.start()
	s.stop()
	s.command("secret-key", "remove", "--data", s.data, "--secret-key-file", other)
	if now, err := os.ReadFile(filepath.Join(s.data, "cell.secret")); err != nil || !bytes.Equal(now, plain) {
		t.Errorf("the secret after the key was removed: %d bytes, %v", len(now), err)
	}
	s.args = nil
	s.start()
	if out := s.command("keys", "list", "--data", s.data); !strings.Contains(out, id) {
		t.Errorf("the access key is gone: %s", out)
	}
}

// Each node of a cluster encrypts its own copy of the secrets with its own key, or has none. After kill -9 at any moment during a change of the key, repeating the
// change completes it.
func TestSecretKeyOfNodes(t *testing.T) {
	t.Parallel()
	first := newService(t)
	keys := []string{newSecretKey(t, first), newSecretKey(t, first)}
	first.args = []string{"--cluster-listen", porttest.Free(t), "--secret-key-file", keys[0]}
	first.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, first) })
	token := mustCluster(t, first, "join-token", "--secret-key-file", keys[0])
	second := newService(t, "--cluster-listen", porttest.Free(t), "--join", token, "--secret-key-file", keys[1])
	second.start()
	waittest.Until(t, "the second node to be ready", func() bool { return ready(t, second) })
	createLocation(t, "custom-a", first, second)
	waittest.Until(t, "both nodes to vote", func() bool {
		var s struct{ Members []struct{ Role string } }
		must(t, json.Unmarshal([]byte(mustCluster(t, second, "status", "--json", "--secret-key-file", keys[1])), &s))
		return len(s.Members) == 2 && s.Members[0].Role != "observer" && s.Members[1].Role != "observer"
	})
	for _, n := range []*service{first, second} {
		authority, err := os.ReadFile(filepath.Join(n.data, "cluster-authority.pem"))
		if err != nil || bytes.Contains(authority, []byte("PRIVATE KEY")) {
			t.Errorf("%s: the key of the authority is not encrypted: %v", n.data, err)
		}
	}
	second.stop()
	for _, args := range [][]string{nil, {"--secret-key-file", keys[0]}} {
		if out := startRefused(t, second, append([]string{"--cluster-listen", porttest.Free(t)}, args...)...); !strings.Contains(out, "is encrypted with the secret key") {
			t.Errorf("started with %q: %s", args, out)
		}
	}
	from, to := keys[1], keys[0]
	for range 20 {
		change := []string{"secret-key", "change", "--data", second.data, "--secret-key-file", from, "--to", to}
		cmd := exec.CommandContext(t.Context(), musterBinary, change...)
		cmd.Env = cleanEnvironment()
		must(t, cmd.Start())
		time.Sleep(rand.N(60 * time.Millisecond)) // any moment will do
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		second.command(change...)
		from, to = to, from
	}
	second.args = []string{"--cluster-listen", porttest.Free(t), "--secret-key-file", from}
	second.start()
	waittest.Until(t, "the second node to be ready again", func() bool { return ready(t, second) })
	createLocation(t, "custom-b", second, first)
}
