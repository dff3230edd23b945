package identity

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// makerDir, when set, turns the test binary into a process that makes keys there: see TestTwoProcesses….
const makerDir = "IDENTITY_TEST_MAKE_KEYS_IN"

const keysPerMaker = 25

func TestMain(m *testing.M) {
	if dir := os.Getenv(makerDir); dir != "" {
		if err := makeKeys(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func makeKeys(dir string) error {
	keys, err := OpenKeys(dir)
	if err != nil {
		return err
	}
	for i := range keysPerMaker {
		key, err := keys.Create(Backend, fmt.Sprintf("key %d of process %d", i, os.Getpid()))
		if err != nil {
			return err
		}
		fmt.Println(key.ID, key.Secret)
	}
	return nil
}

func TestTwoProcessesMakeKeysAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new") // the secret is made in the race as well
	var makers sync.WaitGroup
	printed := make([]string, 2)
	for i := range printed {
		makers.Go(func() {
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), makerDir+"="+dir)
			output, err := command.CombinedOutput()
			if printed[i] = string(output); err != nil {
				t.Errorf("process %d: %v: %s", i, err, output)
			}
		})
	}
	makers.Wait()

	keys := open(t, dir)
	list, err := keys.List()
	if err != nil || len(list) != 2*keysPerMaker {
		t.Fatalf("want %d keys, got %d, %v", 2*keysPerMaker, len(list), err)
	}
	for line := range strings.Lines(printed[0] + printed[1]) {
		id, secret, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key, ok := keys.Find(id); !ok || key.Secret != secret {
			t.Errorf("key %s: found %v, and its secret is the one given out: %v", id, ok, key.Secret == secret)
		}
	}
}

func TestKeyFromCreationToRevocation(t *testing.T) {
	dir := t.TempDir()
	keys := open(t, dir)
	made, err := keys.Create(Client, "game client")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^MUST[A-Z2-7]{16}$`).MatchString(made.ID) || len(made.Secret) != 40 {
		t.Errorf("id %q and a secret of %d characters: want 20 capitals and digits, and 40", made.ID, len(made.Secret))
	}
	if made.Account != "000000000000" || made.Role != Client || made.Name != "game client" || made.Created.IsZero() {
		t.Errorf("got %+v", made)
	}
	if found, ok := keys.Find(made.ID); !ok || found != made {
		t.Errorf("found %v %+v, want %+v", ok, found, made)
	}
	if found, ok := open(t, dir).Find(made.ID); !ok || found != made {
		t.Errorf("after opening again: found %v %+v, want %+v", ok, found, made)
	}
	content, err := os.ReadFile(filepath.Join(dir, keysFile))
	if err != nil || strings.Contains(string(content), made.Secret) {
		t.Errorf("the file holds the secret: %s, %v", content, err)
	}

	if err := keys.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := keys.Find(made.ID); ok {
		t.Error("a revoked key still works")
	}
	if list, err := keys.List(); err != nil || len(list) != 1 || list[0].Revoked.IsZero() {
		t.Errorf("the list should still tell of the revoked key: %+v, %v", list, err)
	}
	if err := keys.Revoke("MUSTNOTTHERE"); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("revoking an unknown key: %v", err)
	}
}

func TestChangesOfAnotherProcessAreNoticed(t *testing.T) {
	dir := t.TempDir()
	server, operator := open(t, dir), open(t, dir)
	made, err := operator.Create(Admin, "late")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the new key works", func() bool { _, ok := server.Find(made.ID); return ok })
	if err := operator.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the revoked key is refused", func() bool { _, ok := server.Find(made.ID); return !ok })
}

func TestDamagedKeyFileKeepsTheKnownKeysUntilItIsMended(t *testing.T) {
	dir := t.TempDir()
	keys := open(t, dir)
	made, err := keys.Create(Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, keysFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string]string{
		"not JSON":      "{",
		"unknown field": strings.Replace(string(good), `"name"`, `"only-from"`, 1),
		"unknown role":  strings.Replace(string(good), `"admin"`, `"root"`, 1),
		"no role":       strings.Replace(string(good), `"role": "admin",`, "", 1),
		"newer format":  strings.Replace(string(good), `"format": 1`, `"format": 2`, 1),
	}
	for name, content := range damaged {
		t.Run(name, func(t *testing.T) {
			write(t, path, content)
			if _, err := OpenKeys(dir); err == nil || !strings.Contains(err.Error(), keysFile) {
				t.Errorf("opening: want an error that names %s, got %v", keysFile, err)
			}
			keys.checked.Store(0) // the next Find looks at the file
			if _, ok := keys.Find(made.ID); !ok {
				t.Error("the running server lost its keys")
			}
			if _, err := keys.Create(Admin, ""); err == nil {
				t.Error("a key was made over a file that could not be read")
			}
		})
	}
	write(t, path, `{"format":1,"keys":[]}`)
	keys.checked.Store(0)
	if _, ok := keys.Find(made.ID); ok {
		t.Error("the mended file was not read")
	}
}

func TestFindBesideChanges(t *testing.T) { // for the race detector
	keys := open(t, t.TempDir())
	first, err := keys.Create(Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				if _, ok := keys.Find(first.ID); !ok {
					t.Error("the key was not found for a moment")
					return
				}
				keys.Find("MUSTNOTTHERE")
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 20 {
		if _, err := keys.Create(ReadOnly, ""); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
}

func TestCreateRefuses(t *testing.T) {
	keys := open(t, t.TempDir())
	if _, err := keys.Create(NoRole, ""); err == nil {
		t.Error("a key without a role was made")
	}
	for _, name := range []string{"two\nlines", strings.Repeat("x", nameMax+1), "\xff"} {
		if _, err := keys.Create(Admin, name); err == nil {
			t.Errorf("a key named %q was made", name)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	keys, err := OpenKeys(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	key, err := keys.Create(Admin, "")
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := keys.Find(key.ID); !ok {
				b.Error("not found")
			}
		}
	})
}

func open(t *testing.T, dir string) *Keys {
	t.Helper()
	keys, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition; the long limit only ends a test that hangs.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute in vain until %s", what)
		}
	}
}
