package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// works reports whether a key is accepted for an ordinary call.
func (s *service) works(id, secret string) bool {
	s.t.Helper()
	_, err := s.apiWith(id, secret).ListFleets(s.t.Context(), &gamelift.ListFleetsInput{})
	if err != nil && !strings.Contains(err.Error(), "UnrecognizedClientException") {
		s.t.Fatalf("a call with key %s: %v", id, err)
	}
	return err == nil
}

// revoke ends a key with the command line.
func (s *service) revoke(id string) { s.command("keys", "revoke", "--data", s.data, id) }

// serviceUser is a user other than root; nothing else on the machine runs under this number.
const serviceUser = 61234

// startAsUser starts Muster as another user; the test must run as root.
func startAsUser(t *testing.T) *service {
	t.Helper()
	if os.Getuid() != 0 {
		cannotRun(t, "needs root, to run as another user than the service")
	}
	s := newService(t, "--dev=false")
	for dir := s.data; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	must(t, os.Chmod(filepath.Dir(musterBinary), 0o755))
	must(t, os.Chmod(s.data, 0o700))
	must(t, os.Chown(s.data, serviceUser, serviceUser))
	s.wrap = []string{"setpriv", "--reuid=" + strconv.Itoa(serviceUser), "--regid=" + strconv.Itoa(serviceUser), "--clear-groups"}
	return s
}

// checkOwner fails when a file in the data directory does not belong to the service.
func (s *service) checkOwner() {
	s.t.Helper()
	must(s.t, filepath.Walk(s.data, func(path string, info os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) { // the store cleans up
			return nil
		}
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != serviceUser {
			err = fmt.Errorf("%s belongs to user %d, the service is %d", path, info.Sys().(*syscall.Stat_t).Uid, serviceUser)
		}
		return err
	}))
}

// Root revokes a key while the service runs as another user: the key is refused when the command returns. Formerly the service could
// not read the changed file, and kept using the old keys.
func TestAttackRevokedKeyWhereRootRevokes(t *testing.T) {
	t.Parallel()
	s := startAsUser(t)
	admin, adminSecret := s.key("admin") // root makes it before the first start
	s.checkOwner()
	s.start()
	for range 5 {
		id, secret := s.key("backend")
		if !s.works(id, secret) {
			t.Fatal("a key that was created does not work when the command has returned")
		}
		s.revoke(id)
		if s.works(id, secret) {
			t.Fatal("a revoked key works after the command has returned")
		}
	}
	s.checkOwner()
	s.stop()
	late, lateSecret := s.key("backend") // root again, while the service is down
	s.revoke(admin)
	s.checkOwner()
	s.start()
	if !s.works(late, lateSecret) || s.works(admin, adminSecret) {
		t.Errorf("after the restart: the new key works: %t, the revoked one: %t", s.works(late, lateSecret), s.works(admin, adminSecret))
	}
}

// A revoked key is refused right after the command has returned, under load, and after every crash.
func TestAttackRevokedKeyAfterCrashes(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t)
	var revoked [][2]string
	for range 4 {
		id, secret := s.key("backend")
		s.revoke(id)
		revoked = append(revoked, [2]string{id, secret})
		s.kill()
		s.start() // service.json of the killed one is still there
		for _, k := range revoked {
			if s.works(k[0], k[1]) {
				t.Fatalf("key %s works after a crash", k[0])
			}
		}
	}
}

// An access key file that is restored after its keys were imported must not bring back revoked keys.
func TestAttackOldKeyFileComesBack(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	const id = "MUSTAAAAAAAAAAAAAAAA"
	file := filepath.Join(s.data, "access-keys.json")
	content := `{"format":1,"keys":[{"id":"` + id + `","role":"admin","account":"000000000000","name":"old","created":"2026-01-01T00:00:00Z"}]}`
	must(t, os.WriteFile(file, []byte(content), 0o600))
	must(t, os.WriteFile(filepath.Join(s.data, "cell.secret"), bytes.Repeat([]byte{7}, 32), 0o600))
	// 30 bytes of HMAC-SHA256(cell.secret, "access-key" 00 id) in base64: secrets stay what they were.
	const secret = "SBjlbclM+9s7G5iFvG+Jn/fuidziccvUavCNUS3R"
	s.start()
	if !s.works(id, secret) {
		t.Fatal("the key of the file does not work")
	}
	if list := s.command("keys", "list", "--data", s.data); !strings.Contains(list, id) || !strings.Contains(list, "old") {
		t.Fatalf("the key was not taken over: %s", list)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	s.revoke(id)
	s.kill()
	must(t, os.WriteFile(file, []byte(content), 0o600)) // as after a crash before it was renamed
	s.start()
	if s.works(id, secret) {
		t.Error("the same file brought the revoked key back")
	}
	s.stop()
	must(t, os.WriteFile(file, []byte(strings.Replace(content, `"old"`, `"new"`, 1)), 0o600))
	s.launch()
	<-s.exited
	if out := s.logs.tail(5); !strings.Contains(out, "access-keys.json") || !strings.Contains(out, "muster keys create") {
		t.Errorf("another file: %s", out)
	}
}

// The port for the command line accepts nothing from users who cannot read the data directory.
func TestAttackLocalDoor(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t)
	content, err := os.ReadFile(filepath.Join(s.data, "service.json"))
	must(t, err)
	var file struct{ Address, Run string }
	must(t, json.Unmarshal(content, &file))
	for _, header := range []http.Header{
		{}, {"Muster-Proof": {""}, "Muster-Nonce": {strings.Repeat("0", 32)}}, {"Muster-Proof": {strings.Repeat("0", 64)}, "Muster-Date": {"1"}},
		{"Authorization": {"Bearer " + file.Run}},
	} {
		for _, path := range []string{"/v1/keys/create", "/v1/keys/list", "/v1/keys/revoke", "/v1/keys/"} {
			r, err := http.NewRequest(http.MethodPost, "http://"+file.Address+path, strings.NewReader(`{"id":"MUSTAAAAAAAAAAAAAAAA","role":"admin"}`))
			must(t, err)
			r.Header = header.Clone()
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			answer.Body.Close()
			if answer.StatusCode < 400 {
				t.Errorf("%s with %v: %s", path, header, answer.Status)
			}
		}
	}
	if list := s.command("keys", "list", "--data", s.data); strings.Count(list, "MUST") != 1 {
		t.Errorf("keys: %s", list)
	}
}

// remote runs the command line against the service's URL with a key.
func (s *service) remote(id, secret string, args ...string) (string, error) {
	cmd := exec.Command(musterBinary, append(args, "--server", s.url())...)
	cmd.Env = cleanEnvironment("AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret, "HOME="+s.t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Only admins manage keys over the network, and none of them can lock out all admins by accident.
func TestAttackKeysOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false", "--log-level", "debug")
	admin, adminSecret := s.key("admin")
	s.start()
	made, err := s.remote(admin, adminSecret, "keys", "create", "--role", "backend", "--format", "env")
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	found := regexp.MustCompile(`AWS_ACCESS_KEY_ID=(\S+)\n.*AWS_SECRET_ACCESS_KEY=(\S+)`).FindStringSubmatch(made)
	if found == nil || !s.works(found[1], found[2]) {
		t.Fatalf("created: %s", made)
	}
	backend, backendSecret := found[1], found[2]
	for _, role := range []string{"backend", "client", "readonly"} {
		id, secret := s.key(role)
		for _, args := range [][]string{{"keys", "create", "--role", "admin"}, {"keys", "list"}, {"keys", "revoke", admin}} {
			if out, err := s.remote(id, secret, args...); err == nil || !strings.Contains(out, "want admin") {
				t.Errorf("%v with a key of the role %s: %v, %s", args, role, err, out)
			}
		}
	}
	if out, err := s.remote(admin, adminSecret, "keys", "revoke", admin); err == nil || !strings.Contains(out, "last one with the role admin") {
		t.Errorf("the last admin key: %v, %s", err, out)
	}
	if out, err := s.remote(admin, adminSecret, "keys", "revoke", backend); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if s.works(backend, backendSecret) {
		t.Error("a key that was revoked over the network works")
	}
	if list, err := s.remote(admin, adminSecret, "keys", "list"); err != nil || !strings.Contains(list, admin+", operator from 127.0.0.1") || strings.Contains(list, backendSecret) {
		t.Errorf("list: %v, %s", err, list)
	}
	if out, err := s.remote(admin, adminSecret, "keys", "revoke", admin, "--force"); err != nil {
		t.Errorf("by force: %v, %s", err, out)
	}
	if s.works(admin, adminSecret) {
		t.Error("the admin key works")
	}
	s.untilLogged("access key revoked")
	if log := s.logs.String(); strings.Contains(log, adminSecret) || strings.Contains(log, backendSecret) {
		t.Error("the log has a secret")
	}
	post := func(contentType, origin string) int {
		r, err := http.NewRequest(http.MethodPost, s.url()+"/operator/v1/keys", strings.NewReader(`{"role":"admin"}`))
		must(t, err)
		r.Header.Set("Content-Type", contentType)
		if origin != "" {
			r.Header.Set("Sec-Fetch-Site", origin)
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	for _, c := range [][2]string{{"application/json", ""}, {"text/plain", ""}, {"application/json", "cross-site"}} {
		if status := post(c[0], c[1]); status < 400 {
			t.Errorf("%v without credentials: %d", c, status)
		}
	}
}

// The number of keys is bounded: a holder of an admin key cannot fill the state with them.
func TestAttackKeysWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false", "--limit-access-keys", "3")
	admin, adminSecret := s.key("admin")
	s.start()
	for range 2 {
		if out, err := s.remote(admin, adminSecret, "keys", "create", "--role", "client"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := s.remote(admin, adminSecret, "keys", "create", "--role", "client"); err == nil || !strings.Contains(out, "limit is 3") {
		t.Errorf("beyond the limit: %v, %s", err, out)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/metrics", nil)
	must(t, err)
	r.SetBasicAuth(admin, adminSecret)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	for _, line := range []string{`muster_access_keys{state="working"} 3`, `muster_access_keys_limit 3`} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q in /metrics", line)
		}
	}
}
