package identity

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain/access"
)

func TestCellSecretIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenCellSecret(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenCellSecret(dir)
	if err != nil || again != first {
		t.Errorf("opening again gave another secret, %v", err)
	}
	other, err := OpenCellSecret(t.TempDir())
	if err != nil || other == first {
		t.Errorf("two cells have the same secret, %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, secretFile))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600", info.Mode(), err)
	}
}

// A flipped bit anywhere in the file is detected, and so is a truncated file.
func TestDamagedCellSecretIsNoticed(t *testing.T) {
	dir := t.TempDir()
	want, err := OpenCellSecret(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, secretFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCellSecret(dir); !isDamagedSecret(err) || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: got %v, want *DamagedSecret that names %s", what, err, path)
		}
	}
	for bit := range 8 * len(content) {
		damaged := bytes.Clone(content)
		damaged[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprint("bit ", bit, " flipped"), damaged)
	}
	for n := range content {
		if n != secretSize { // what earlier releases wrote
			try(fmt.Sprint("cut to ", n), content[:n])
		}
	}
	if err := os.WriteFile(path, want.key[:], 0o600); err != nil {
		t.Fatal(err)
	}
	if got, id, err := ReadSecretFile(dir, nil); err != nil || got != want || id != uuid.Nil {
		t.Errorf("file of an earlier release: installation %s, %v", id, err)
	}
}

func isDamagedSecret(err error) bool {
	_, ok := errors.AsType[*DamagedSecret](err)
	return ok
}

func TestProcessToken(t *testing.T) {
	secret := CellSecret{key: [secretSize]byte{1, 2, 3}}
	unregistered := [16]byte{}
	token := secret.ProcessToken("fleet-1", "DesktopPC", unregistered, 1)
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(token) {
		t.Errorf("%q has not the shape of a UUID", token)
	}
	if again := secret.ProcessToken("fleet-1", "DesktopPC", unregistered, 1); !Equal(again, token) {
		t.Errorf("derived again: %s, want %s", again, token)
	}
	// These exact values are guaranteed: tokens that were issued before an update stay valid.
	if want := "1e88b5d2-8300-878c-8140-926aa846a5f1"; token != want {
		t.Errorf("got %s, want %s", token, want)
	}
	registered := secret.ProcessToken("fleet-1", "DesktopPC", [16]byte{1}, 1)
	if want := "09012ec3-8b6b-8adc-a366-bec7e0d4175f"; registered != want {
		t.Errorf("registered: got %s, want %s", registered, want)
	}
	if other := secret.ProcessToken("fleet-1", "DesktopPC", [16]byte{2}, 1); other == registered {
		t.Errorf("two registrations have the token %s", other)
	}
	for _, other := range []string{
		secret.ProcessToken("fleet-1", "DesktopPC", unregistered, 2),
		secret.ProcessToken("fleet-1", "DesktopPC", [16]byte{1}, 1),
		secret.ProcessToken("fleet-2", "DesktopPC", unregistered, 1),
		secret.ProcessToken("fleet-1D", "esktopPC", unregistered, 1),
		CellSecret{}.ProcessToken("fleet-1", "DesktopPC", unregistered, 1),
	} {
		if Equal(other, token) {
			t.Errorf("another fleet, compute, generation or cell has the token %s too", token)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	secret := CellSecret{key: [secretSize]byte([]byte("0123456789abcdef0123456789abcdef"))}
	key := AccessKey{ID: "MUSTX", Role: Admin, Secret: "hidden"}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("started", "secret", secret, "key", key)
	fmt.Fprintf(&out, "%v %s %+v %#v %x", secret, secret, secret, secret, secret)
	for _, leak := range []string{"0123", "30313233", "48 49", "0x30", "hidden"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in the output: %s", leak, out.String())
		}
	}
}

func TestRoleText(t *testing.T) {
	for _, role := range []Role{Admin, Backend, Client, ReadOnly} {
		text, err := role.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Role
		if err := back.UnmarshalText(text); err != nil || back != role {
			t.Errorf("%s: came back as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{"", "root", "Admin", "Role(0)"} {
		if role, err := access.ParseRole(text); err == nil {
			t.Errorf("%q was read as %s", text, role)
		}
	}
	if text, err := access.NoRole.MarshalText(); err == nil {
		t.Errorf("no role was written as %q", text)
	}
}
