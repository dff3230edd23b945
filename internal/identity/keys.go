// Package identity is for knowing who calls: access keys with their roles, the secret of the cell, and the tokens
// that let game servers connect. It stores no secret but the cell's; all others are derived from that one.
package identity

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	// DefaultAccount stands in ARNs: a signature names no account, so the key has to.
	DefaultAccount = "000000000000"

	// A key made or revoked by another process counts after at most this long. An unknown key is looked up again
	// sooner, so that one just made works at once; the pause keeps strangers from making us read the disk.
	lookAgain        = time.Second
	lookAgainUnknown = 20 * time.Millisecond

	nameMax = 128
)

// AccessKey is what a client signs its requests with.
type AccessKey struct {
	ID      string
	Name    string // what the operator called it
	Secret  string
	Account string // 12 digits, for ARNs
	Role    Role
	Created time.Time
	Revoked time.Time // zero while the key works
}

// LogValue keeps the secret out of the log.
func (k AccessKey) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID), slog.String("name", k.Name), slog.String("role", k.Role.String()))
}

// ErrUnknownKey is given when a key that is to be revoked is not there.
var ErrUnknownKey = errors.New("no such access key")

// Keys knows the access keys of a data directory. Several processes may change them at once.
type Keys struct {
	dir     string
	secret  CellSecret
	known   atomic.Pointer[knownKeys]
	checked atomic.Int64 // when the file was last looked at, in Unix nanoseconds

	reload sync.Mutex // one reader of the file at a time; the others go on with what is known
}

// knownKeys is never changed once it is published.
type knownKeys struct {
	byID map[string]AccessKey // those that work
	file fs.FileInfo          // what the file was like; nil without one
}

// OpenKeys reads the keys of a data directory, and makes the cell's secret when the directory is new.
func OpenKeys(dir string) (*Keys, error) {
	secret, err := OpenCellSecret(dir)
	if err != nil {
		return nil, err
	}
	k := &Keys{dir: dir, secret: secret}
	return k, k.load()
}

// Find gives a key that works. It takes no lock, and looks at the file's name now and then.
func (k *Keys) Find(id string) (AccessKey, bool) {
	k.lookIfOlder(lookAgain)
	if key, ok := k.known.Load().byID[id]; ok {
		return key, true
	}
	k.lookIfOlder(lookAgainUnknown)
	key, ok := k.known.Load().byID[id]
	return key, ok
}

// Create makes a key and stores it durably before it gives it away.
func (k *Keys) Create(role Role, name string) (AccessKey, error) {
	if role == NoRole {
		return AccessKey{}, fmt.Errorf("create access key: role is missing")
	}
	if err := checkName(name); err != nil {
		return AccessKey{}, fmt.Errorf("create access key: %w", err)
	}
	record := keyRecord{ID: newKeyID(), Role: role, Account: DefaultAccount, Name: name, Created: time.Now().UTC().Truncate(time.Second)}
	err := k.change(func(records []keyRecord) ([]keyRecord, error) { return append(records, record), nil })
	if err != nil {
		return AccessKey{}, err
	}
	return k.accessKey(record), nil
}

// Revoke ends a key for good. The record stays, so that a list still tells what the key was. Revoking again
// changes nothing.
func (k *Keys) Revoke(id string) error {
	return k.change(func(records []keyRecord) ([]keyRecord, error) {
		i := slices.IndexFunc(records, func(r keyRecord) bool { return r.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("revoke access key %q: %w", id, ErrUnknownKey)
		}
		if records[i].Revoked.IsZero() {
			records[i].Revoked = time.Now().UTC().Truncate(time.Second)
		}
		return records, nil
	})
}

// List gives all keys, revoked ones too, in order of creation.
func (k *Keys) List() ([]AccessKey, error) {
	records, _, err := readKeyFile(k.dir)
	keys := make([]AccessKey, 0, len(records))
	for _, record := range records {
		keys = append(keys, k.accessKey(record))
	}
	return keys, err
}

// CellSecret gives the secret that the keys are derived from.
func (k *Keys) CellSecret() CellSecret { return k.secret }

// change reads, edits and replaces the file while no other process can.
func (k *Keys) change(edit func([]keyRecord) ([]keyRecord, error)) error {
	unlock, err := lockDir(k.dir)
	if err != nil {
		return fmt.Errorf("change access keys: %w", err)
	}
	defer unlock()
	records, _, err := readKeyFile(k.dir)
	if err != nil {
		return err
	}
	if records, err = edit(records); err != nil {
		return err
	}
	if err := writeKeyFile(k.dir, records); err != nil {
		return err
	}
	return k.load()
}

// lookIfOlder takes over what other processes changed, if the last look is at least age ago. One caller looks; the
// others go on with what is known.
func (k *Keys) lookIfOlder(age time.Duration) {
	last, now := k.checked.Load(), time.Now().UnixNano()
	if now-last < int64(age) && now >= last || !k.checked.CompareAndSwap(last, now) {
		return
	}
	info, err := os.Stat(filepath.Join(k.dir, keysFile))
	before := k.known.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist) && before.file == nil:
		return
	case err == nil && before.file != nil && os.SameFile(info, before.file) && info.ModTime().Equal(before.file.ModTime()) && info.Size() == before.file.Size():
		return
	}
	if err := k.load(); err != nil {
		// A slip of an editor must not lock everybody out. It is told once; the next change is read again.
		slog.Error("access keys changed, but cannot be read; going on with the old ones", "error", err)
		k.known.CompareAndSwap(before, &knownKeys{byID: before.byID, file: info})
	}
}

func (k *Keys) load() error {
	k.reload.Lock()
	defer k.reload.Unlock()
	records, info, err := readKeyFile(k.dir)
	if err != nil {
		return err
	}
	known := &knownKeys{byID: make(map[string]AccessKey, len(records)), file: info}
	for _, record := range records {
		if record.Revoked.IsZero() {
			known.byID[record.ID] = k.accessKey(record)
		}
	}
	k.known.Store(known)
	return nil
}

func (k *Keys) accessKey(r keyRecord) AccessKey {
	return AccessKey{
		ID: r.ID, Name: r.Name, Secret: k.secret.accessKeySecret(r.ID), Account: r.Account,
		Role: r.Role, Created: r.Created, Revoked: r.Revoked,
	}
}

// newKeyID has the form of AWS's own, 20 capitals and digits that start with four letters that say whose it is.
func newKeyID() string {
	random := make([]byte, 10)
	rand.Read(random) // never fails: since Go 1.24 it ends the program instead
	return "MUST" + base32.StdEncoding.EncodeToString(random)
}

// checkName keeps a list of keys on one line for each.
func checkName(name string) error {
	if len(name) > nameMax || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("name %q: want at most %d bytes without control characters", name, nameMax)
	}
	return nil
}
