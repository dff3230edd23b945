package identity

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/secretkey"
	"github.com/musterhq/muster/internal/waittest"
)

// rotating is the secret of a data directory, with a state and a clock that the test moves.
type rotating struct {
	CellSecret
	t   *testing.T
	dir string
	at  time.Time
	all []access.SecretStanding
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	x := &rotating{t: t, dir: t.TempDir(), at: time.UnixMilli(1_795_000_000_000)}
	secret, err := OpenCellSecret(x.dir)
	if err != nil {
		t.Fatal(err)
	}
	x.CellSecret = secret.Kept(x.dir, nil)
	x.Generations().UseClock(func() time.Time { return x.at })
	x.all = []access.SecretStanding{{SecretGeneration: access.SecretGeneration{Number: 1, Check: secret.Check(), Activated: domain.TimeOf(x.at)}, Needed: true}}
	x.follow()
	return x
}

func (x *rotating) follow() (missing []access.SecretStanding) {
	x.t.Helper()
	missing, err := x.Generations().Follow(slices.Clone(x.all))
	if err != nil {
		x.t.Fatal(err)
	}
	return missing
}

// prepare adds a generation that is not used to sign yet.
func (x *rotating) prepare() (number uint32) {
	x.t.Helper()
	number = x.all[len(x.all)-1].Number + 1
	secret := NewCellSecret()
	if err := x.Generations().Add(number, secret); err != nil {
		x.t.Fatal(err)
	}
	x.all = append(x.all, access.SecretStanding{SecretGeneration: access.SecretGeneration{Number: number, Check: secret.Check()}, Needed: true})
	x.follow()
	return number
}

// activate starts to sign with it. The previous generation stays valid for overlap.
func (x *rotating) activate(overlap time.Duration) {
	x.t.Helper()
	last := len(x.all) - 1
	x.all[last].Activated, x.all[last-1].Until = domain.TimeOf(x.at), domain.TimeOf(x.at.Add(overlap))
	x.follow()
}

func (x *rotating) file() []byte {
	x.t.Helper()
	content, err := os.ReadFile(filepath.Join(x.dir, secretFile))
	if err != nil {
		x.t.Fatal(err)
	}
	return content
}

func (x *rotating) accepts(signature []byte) bool {
	return x.Accepts("test", func(g CellSecret) bool { return bytes.Equal(g.ConsoleSignature("a"), signature) })
}

func TestGenerations(t *testing.T) {
	x := newRotating(t)
	first, code, plain := x.ConsoleSignature("a"), x.CellCode(), x.file()
	x.prepare()
	next, ok := x.At(2)
	if !ok || !bytes.Equal(x.ConsoleSignature("a"), first) || !x.accepts(next.ConsoleSignature("a")) {
		t.Fatal("a generation that is on its way must be accepted, and sign nothing")
	}
	x.activate(time.Hour)
	if !bytes.Equal(x.ConsoleSignature("a"), next.ConsoleSignature("a")) || !x.accepts(first) || x.Generation() != 2 || x.CellCode() != code {
		t.Fatalf("generation %d signs, the first one is accepted: %t", x.Generation(), x.accepts(first))
	}
	if uses := x.Generations().Uses(); len(uses) != 1 || uses[0].Number != 1 || uses[0].Purpose != "test" || uses[0].At != domain.TimeOf(x.at) {
		t.Errorf("uses %+v", uses)
	}
	if keys := x.WebhookKeys("events"); len(keys) != 2 || keys[0] != next.WebhookKey("events") {
		t.Errorf("%d keys of a webhook", len(keys))
	}

	read, id, err := ReadSecretFile(x.dir, nil)
	if err != nil || id == uuid.Nil || read.Generation() != 2 || read.CellCode() != code || read.Text() != x.Text() {
		t.Errorf("the file has generation %d, installation %s, %v", read.Generation(), id, err)
	}
	if text, err := ParseCellSecret(x.Text()); err != nil || text.Check() != x.Check() || text.CellCode() != code {
		t.Errorf("the text: %v", err)
	}
	for i := range x.file() { // no damage is taken for another secret
		damaged := bytes.Clone(x.file())
		damaged[i] ^= 1
		if err := os.WriteFile(filepath.Join(x.dir, secretFile), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCellSecret(x.dir, nil); !isDamagedSecret(err) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		damaged[i] ^= 1
		if err := os.WriteFile(filepath.Join(x.dir, secretFile), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	x.at = x.at.Add(time.Hour - time.Millisecond)
	if !x.accepts(first) {
		t.Error("refused before its date of last use")
	}
	if x.at = x.at.Add(time.Millisecond); x.accepts(first) || !x.accepts(next.ConsoleSignature("a")) {
		t.Error("accepted at its date of last use")
	}
	x.all[0].Ended, x.all[0].Needed = domain.TimeOf(x.at), false
	x.follow()
	if bytes.Contains(x.file(), plain[24:56]) {
		t.Error("the file has a secret that is not needed any more")
	}
	if _, ok := x.At(1); ok {
		t.Error("an old generation is in memory")
	}
}

// A generation from which access keys are derived is kept for these only.
func TestGenerationOfAccessKeys(t *testing.T) {
	x := newRotating(t)
	keys := NewKeys(x.CellSecret, func() time.Time { return x.at })
	old := access.Key{ID: "OLD", Role: Admin, Account: DefaultAccount}
	keys.Publish([]access.Key{old})
	before, _ := keys.Find("OLD")
	session := keys.Issue(Session{Source: FromKey, Holder: "OLD", Role: Admin, Account: DefaultAccount}, time.Hour)
	if _, err := keys.With(session.pair()); err != nil {
		t.Fatal(err)
	}
	held, err := keys.With(session.pair())
	if err != nil {
		t.Fatal(err)
	}
	life := held.Life()
	x.prepare()
	x.activate(time.Hour)
	made := access.Key{ID: "NEW", Role: Admin, Account: DefaultAccount, Generation: 2}
	keys.Publish([]access.Key{old, made})
	second, _ := x.At(2)
	if key, _ := keys.Find("NEW"); key.Secret != second.AccessKeySecret("NEW") || key.Generation() != 2 {
		t.Error("a new key is not derived from the new generation")
	}
	if _, err := keys.With(session.pair()); err != nil || life.Err() != nil {
		t.Errorf("temporary credentials of before: %v, %v", err, life.Err())
	}
	late := keys.Issue(Session{Source: FromKey, Holder: "OLD", Role: Admin, Account: DefaultAccount}, time.Hour)

	x.all[0].Ended = domain.TimeOf(x.at)
	x.follow()
	keys.Publish([]access.Key{old, made})
	if key, ok := keys.Find("OLD"); !ok || key.Secret != before.Secret || key.Life().Err() != nil {
		t.Error("an access key has changed with the end of the generation that it is derived from")
	}
	if _, err := keys.With(session.pair()); !errors.Is(err, ErrUnknown) || life.Err() == nil {
		t.Errorf("temporary credentials of a retired generation: %v, %v", err, life.Err())
	}
	if _, err := keys.With(late.pair()); err != nil {
		t.Errorf("those of the next one: %v", err)
	}

	lost := CellSecret{key: second.key}.Kept("", nil)
	elsewhere := NewKeys(lost, func() time.Time { return x.at })
	elsewhere.Publish([]access.Key{made})
	if key, ok := elsewhere.Find("NEW"); !ok || len(key.Secret) < 20 || key.Secret == second.AccessKeySecret("NEW") {
		t.Error("a key whose generation is missing must have a secret that fits nothing")
	}
}

// A node whose disk is full still refuses an ended generation at once. It does not report a new one as stored, and writes the file later.
func TestFileThatCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root, the directory is replaced by a file")
	}
	x := newRotating(t)
	x.prepare()
	x.activate(time.Hour)
	first, _ := x.At(1)
	away := x.dir + ".away"
	if err := os.Rename(x.dir, away); err != nil {
		t.Fatal(err)
	}
	if err := x.Generations().Add(3, NewCellSecret()); err == nil {
		t.Error("a generation counts as stored without a directory")
	}
	if _, ok := x.At(3); ok {
		t.Error("a generation that is not stored is in force")
	}
	x.all[0].Ended, x.all[0].Needed = domain.TimeOf(x.at), false
	if _, err := x.Generations().Follow(slices.Clone(x.all)); err == nil {
		t.Error("no error without a directory")
	}
	if x.accepts(first.ConsoleSignature("a")) {
		t.Error("accepted after its end")
	}
	if err := os.Rename(away, x.dir); err != nil {
		t.Fatal(err)
	}
	if err := x.Generations().Flush(); err != nil {
		t.Fatal(err)
	}
	if read, err := ReadCellSecret(x.dir, nil); err != nil || read.Text() != x.Text() {
		t.Errorf("the file is not what is in force: %v", err)
	}
}

// A connection token that is made again is identical, even if a rotation happens in between.
func TestConnectionTokensKeepTheirGeneration(t *testing.T) {
	x := newRotating(t)
	end := x.at.Add(10 * time.Minute)
	of := x.ForTokenUntil(end).Generation()
	x.prepare()
	x.activate(time.Hour)
	if again := x.ForTokenUntil(end).Generation(); of != 1 || again != of {
		t.Errorf("signed by %d, made again by %d", of, again)
	}
	if late := x.ForTokenUntil(x.at.Add(ConnectionKeyAhead)).Generation(); late != 2 {
		t.Errorf("one that ends later is signed by %d", late)
	}
	x.all[0].Ended = domain.TimeOf(x.at)
	x.follow()
	if now := x.ForTokenUntil(end).Generation(); now != 2 {
		t.Errorf("after the end of the first one, %d signs", now)
	}
}

// A check waits only for a generation that the state has and this node lacks.
func TestCheckWaitsForAGeneration(t *testing.T) {
	x := newRotating(t)
	next := NewCellSecret()
	x.all = append(x.all, access.SecretStanding{SecretGeneration: access.SecretGeneration{Number: 2, Check: next.Check(), Activated: domain.TimeOf(x.at)}, Needed: true})
	x.all[0].Until = domain.TimeOf(x.at.Add(time.Hour))
	if missing := x.follow(); len(missing) != 1 || !x.Generations().Lacks() {
		t.Fatalf("missing %+v", missing)
	}
	signature := CellSecret{key: next.key}.ConsoleSignature("a")
	accepted := make(chan bool)
	go func() { accepted <- x.accepts(signature) }()
	waittest.Until(t, "the check waits", func() bool { return x.Generations().waiting.Load() > 0 })
	if err := x.Generations().Add(2, next); err != nil {
		t.Fatal(err)
	}
	x.follow()
	if !<-accepted || x.Generations().Lacks() || x.accepts([]byte("forged")) {
		t.Error("the check did not wait for the generation")
	}
}

// Players' access tokens name their generation. A number in any form that the service does not write counts as 0.
func TestAccessTokenGenerations(t *testing.T) {
	x := newRotating(t)
	if token := x.AccessToken([16]byte{1}, [16]byte{}); AccessTokenGeneration(token) != 1 {
		t.Errorf("the first generation is in %q", token)
	}
	x.prepare()
	x.activate(time.Hour)
	if token := x.AccessToken([16]byte{1}, [16]byte{}); AccessTokenGeneration(token) != 2 {
		t.Errorf("generation 2 is not in %q", token)
	}
	for _, forged := range []string{".", "0.x", "1.x", "-1.x", "4294967296.x", "99999999999999999999.x", "a.x"} {
		if n := AccessTokenGeneration(forged); n != 0 {
			t.Errorf("%q is of generation %d", forged, n)
		}
	}
}

// The secret in a backup has every generation that its state needs, whenever the state was frozen.
func TestSecretOfABackup(t *testing.T) {
	x := newRotating(t)
	before := x.Frozen()
	x.prepare()
	x.activate(time.Hour)
	x.all[0].Ended, x.all[0].Needed = domain.TimeOf(x.at), false
	x.follow()
	both := x.With(before)
	for n := uint32(1); n <= 2; n++ {
		if _, ok := both.At(n); !ok {
			t.Errorf("generation %d is missing", n)
		}
	}
	if missing, fits := both.Fits(x.all); !fits || len(missing) > 0 || both.Generation() != 2 {
		t.Errorf("missing %v, fits %t", missing, fits)
	}
	if _, fits := NewCellSecret().Fits(x.all); fits {
		t.Error("another secret fits")
	}
	if missing, _ := before.Fits(x.all); !slices.Equal(missing, []uint32{2}) {
		t.Errorf("an older file misses %v", missing)
	}
}

func TestGenerationsAreEncrypted(t *testing.T) {
	x := newRotating(t)
	path := filepath.Join(t.TempDir(), "key")
	key, err := secretkey.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Write(x.dir, uuid.New(), key); err != nil {
		t.Fatal(err)
	}
	kept := x.Frozen().Kept(x.dir, key)
	if err := kept.Generations().Add(2, NewCellSecret()); err != nil {
		t.Fatal(err)
	}
	second, _ := kept.At(2)
	if bytes.Contains(x.file(), second.key[:]) || !secretkey.Sealed(x.file()) {
		t.Error("the file is not encrypted")
	}
	if read, err := ReadCellSecret(x.dir, key); err != nil || read.Text() != kept.Text() {
		t.Errorf("read again: %v", err)
	}
}
