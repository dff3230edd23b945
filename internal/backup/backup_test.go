package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

// newContent returns the content of a small service for a backup.
func newContent(t *testing.T) (c Content, records []archive.Record) {
	t.Helper()
	disk, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	vault, err := archivetest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{Journal: disk, Archive: vault, Cell: cell.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.Do(t.Context(), &hosting.CreateLocation{Name: "custom-home"}); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(-time.Hour).UnixMilli()
	for i := range 4 {
		records = append(records, archive.Record{Kind: archive.Kind(1 + i%2), ID: fmt.Sprint("record-", i), Created: now, Ended: now + int64(i), Fleet: "f", Player: "p", Data: []byte{byte(i), 0, 255}})
	}
	later := archive.Record{Kind: archive.Ticket, ID: "later", Created: now, Ended: time.Now().Add(time.Hour).UnixMilli()}
	if err := vault.Put(t.Context(), append(slices.Clone(records), later)); err != nil {
		t.Fatal(err)
	}
	f, err := e.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Content{
		Head:  Head{Installation: uuid.New(), Entry: f.Entry, Level: f.Level, State: f.Last.Std(), Forgotten: f.Forgotten, Made: time.Now().UTC(), Release: "1.2.3"},
		State: f.Write, Secret: identity.NewCellSecret(), Archive: vault,
	}, records
}

func toFile(ctx context.Context, path string, leave uint64, c Content) (Summary, error) {
	return WriteFile(ctx, path, leave, func(file io.Writer) (Summary, error) { return Write(ctx, file, c) })
}

func TestBackupHasEverything(t *testing.T) {
	c, want := newContent(t)
	path := filepath.Join(t.TempDir(), "backup")
	written, err := toFile(t.Context(), path, 0, c)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != written.Bytes {
		t.Errorf("%+v, %v; the summary says %d bytes", info, err, written.Bytes)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, state, err := Verify(bytes.NewReader(content), cell.DefaultConfig(), nil)
	if err != nil || s.Head != written.Head || s.Bytes != written.Bytes || s.Records[archive.GameSession] != 2 || s.Records[archive.Ticket] != 0 {
		t.Errorf("verified %+v, %v, written %+v", s, err, written)
	}
	v := state.View()
	if n := v.Totals(); n.Fleets != 0 || state.Last().Std() != c.Head.State {
		t.Errorf("state of %s: %+v", state.Last().Std(), n)
	}
	r, err := NewReader(bytes.NewReader(content), nil)
	if err != nil || r.Secret.Check() != c.Secret.Check() {
		t.Fatalf("another secret, or %v", err)
	}
	if _, err := io.Copy(io.Discard, r.State()); err != nil {
		t.Fatal(err)
	}
	var got []archive.Record
	for record, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, record)
	}
	slices.SortFunc(got, func(a, b archive.Record) int { return int(a.Ended - b.Ended) })
	if archive.Sum(got) != archive.Sum(want) || len(got) != len(want) {
		t.Errorf("records %+v, want %+v", got, want)
	}
	if _, err := toFile(t.Context(), path, 0, c); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over an existing file: %v", err)
	}
}

// Entries of the audit log stay in the archive for longer than other records, so their end is in the future. A backup includes those that had left memory.
func TestAuditEntriesAreInABackup(t *testing.T) {
	c, records := newContent(t)
	id := func(no uint64) string { return string(binary.BigEndian.AppendUint64(nil, no)) }
	for no := range uint64(3) {
		at := time.Now()
		if err := c.Archive.Put(t.Context(), []archive.Record{{Kind: archive.AuditEntry, ID: id(no + 1), Created: at.UnixMilli(), Ended: at.AddDate(1, 0, 0).UnixMilli()}}); err != nil {
			t.Fatal(err)
		}
	}
	c.Head.Audited = 2
	file := &bytes.Buffer{}
	s, err := Write(t.Context(), file, c)
	if err != nil || s.Records[archive.AuditEntry] != 2 || s.Records[archive.GameSession] != 2 {
		t.Errorf("%+v, %v; want two entries of the audit log", s, err)
	}
	c.Head.Since = &Since{Installation: c.Head.Installation, Entry: c.Head.Entry, Next: records[2].Ended, Audited: 1}
	file.Reset()
	if s, err = Write(t.Context(), file, c); err != nil || s.Records[archive.AuditEntry] != 1 || s.Records[archive.GameSession]+s.Records[archive.PlayerSession] != 2 {
		t.Errorf("since an earlier one: %+v, %v; want an entry of the audit log and two other records", s, err)
	}
	if _, _, err := Verify(file, cell.DefaultConfig(), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("what is new alone is no backup: %v", err)
	}
}

// A file with any changed byte, or without its end or beginning, is not accepted as a backup.
func TestDamageIsRecognised(t *testing.T) {
	c, _ := newContent(t)
	file := &bytes.Buffer{}
	if _, err := Write(t.Context(), file, c); err != nil {
		t.Fatal(err)
	}
	want := func(what string, content []byte) {
		t.Helper()
		if _, _, err := Verify(bytes.NewReader(content), cell.DefaultConfig(), nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	whole := file.Bytes()
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= byte(1 << (i % 8))
		want(fmt.Sprintf("byte %d of %d has changed", i, len(whole)), damaged)
		want(fmt.Sprintf("cut after %d of %d bytes", i, len(whole)), whole[:i])
	}
	want("one byte more", append(slices.Clone(whole), 0))
	want("twice", slices.Concat(whole, whole))
	want("without its beginning", whole[len(magic):])
}

// Intact blocks in the wrong place are damage, too.
func TestBlocksOutOfPlace(t *testing.T) {
	file := &bytes.Buffer{}
	w := newBlockWriter(file)
	content := make([]byte, 3*blockBytes)
	for i := range content {
		content[i] = byte(i / blockBytes)
	}
	w.whole(stateBlock, content)
	w.whole(endBlock, []byte("{}"))
	if err := w.begin(0); err != nil {
		t.Fatal(err)
	}
	read := func(file []byte) error {
		r, err := newBlockReader(bytes.NewReader(file))
		if err != nil {
			return err
		}
		got, err := io.ReadAll(part{r, stateBlock})
		if err != nil {
			return err
		}
		if !bytes.Equal(got, content) {
			t.Error("other bytes were read than written")
		}
		_, err = r.whole(endBlock)
		return err
	}
	if err := read(file.Bytes()); err != nil {
		t.Fatal(err)
	}
	const size = frameBytes + blockBytes
	block := func(i int) []byte { return file.Bytes()[len(magic)+i*size:][:size] }
	begins, ends := file.Bytes()[:len(magic)], file.Bytes()[len(magic)+3*size:]
	for name, wrong := range map[string][]byte{
		"lost":     slices.Concat(begins, block(0), block(2), ends),
		"repeated": slices.Concat(begins, block(0), block(0), block(1), block(2), ends),
		"moved":    slices.Concat(begins, block(1), block(0), block(2), ends),
	} {
		if err := read(wrong); !errors.Is(err, ErrDamaged) {
			t.Errorf("a block was %s: %v", name, err)
		}
	}
}

// A backup of a later release is refused as such, not as damaged.
func TestBackupOfALaterRelease(t *testing.T) {
	c, _ := newContent(t)
	c.Head.Level = knownLevel() + 1
	file := &bytes.Buffer{}
	if _, err := Write(t.Context(), file, c); err != nil {
		t.Fatal(err)
	}
	_, _, err := Verify(file, cell.DefaultConfig(), nil)
	if later, ok := errors.AsType[*kernel.LaterRelease](err); !ok || later.Level != c.Head.Level {
		t.Errorf("level %d: %v", c.Head.Level, err)
	}
}

// A header that does not match the state is damage, and so is another installation's secret.
func TestPartsThatDoNotFit(t *testing.T) {
	for name, spoil := range map[string]func(c *Content){
		"forgotten": func(c *Content) { c.Head.Forgotten++ },
		"time":      func(c *Content) { c.Head.State = c.Head.State.Add(time.Second) },
		"entry":     func(c *Content) { c.Head.Entry = 0 },
		"state":     func(c *Content) { c.State = func(io.Writer) error { return nil } },
	} {
		c, _ := newContent(t)
		spoil(&c)
		file := &bytes.Buffer{}
		if _, err := Write(t.Context(), file, c); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Verify(file, cell.DefaultConfig(), nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A copy of a stream has the same bytes, and an error at the end of the stream, after the whole backup, fails the copy.
func TestCopy(t *testing.T) {
	c, _ := newContent(t)
	var sent, got bytes.Buffer
	written, err := Write(t.Context(), &sent, c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Copy(&got, bytes.NewReader(sent.Bytes()), nil)
	if err != nil || !bytes.Equal(got.Bytes(), sent.Bytes()) || s.Head != written.Head || s.Bytes != written.Bytes {
		t.Errorf("%+v, %v, %d bytes; want %+v and %d bytes", s, err, got.Len(), written, sent.Len())
	}
	if _, err := Copy(io.Discard, bytes.NewReader(sent.Bytes()[:sent.Len()-1]), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut off: %v", err)
	}
	unproven := errors.New("unproven")
	if _, err := Copy(io.Discard, io.MultiReader(&sent, iotest.ErrReader(unproven)), nil); !errors.Is(err, unproven) {
		t.Errorf("with an error at the end: %v", err)
	}
}

// A second backup to the same file is refused, and does not disturb the first one.
func TestTwoBackupsToOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	write := func(text string) func(io.Writer) (Summary, error) {
		return func(w io.Writer) (s Summary, err error) {
			_, err = io.WriteString(w, text)
			return s, err
		}
	}
	_, err := WriteFile(t.Context(), path, 0, func(w io.Writer) (Summary, error) {
		if _, err := WriteFile(t.Context(), path, 0, write("second")); err == nil {
			t.Error("the second backup was written")
		} else if runtime.GOOS != "windows" && !strings.Contains(err.Error(), "another command") {
			t.Errorf("the second backup: %v", err)
		}
		return write("first")(w)
	})
	text, _ := os.ReadFile(path) // it is compared
	if err != nil || string(text) != "first" {
		t.Errorf("the first backup: %v, %q", err, text)
	}
}

// Of backups that begin at the same moment, at most one is written, and its file is whole, also after a command that was killed.
func TestBackupsToOneFileAtTheSameMoment(t *testing.T) {
	dir := t.TempDir()
	for round := range 200 {
		path := filepath.Join(dir, strconv.Itoa(round))
		if round%2 == 0 {
			if err := os.WriteFile(path+partialSuffix, []byte("of a killed command"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var written []string
		for i := range 4 {
			all.Go(func() {
				text := strings.Repeat(strconv.Itoa(i), 100)
				_, err := WriteFile(t.Context(), path, 0, func(w io.Writer) (s Summary, err error) {
					for range 4 {
						_, err = io.WriteString(w, text)
						runtime.Gosched()
					}
					return s, err
				})
				if err == nil {
					mu.Lock()
					written = append(written, strings.Repeat(text, 4))
					mu.Unlock()
				}
			})
		}
		all.Wait()
		text, err := os.ReadFile(path)
		if len(written) > 1 || len(written) == 1 && (err != nil || string(text) != written[0]) || len(written) == 0 && err == nil {
			t.Fatalf("round %d: %d were written, and the file is %.500q, %v", round, len(written), text, err)
		}
	}
}

// A backup that cannot be finished leaves no file, and one that was killed does not prevent the next one.
func TestUnfinishedBackup(t *testing.T) {
	c, _ := newContent(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	none := func(what string) {
		t.Helper()
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", what, left, err)
		}
	}
	if _, err := toFile(t.Context(), path, 1<<62, c); err == nil || !strings.HasPrefix(err.Error(), "no space left") {
		t.Errorf("without room: %v", err)
	}
	none("without room")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := toFile(ctx, path, 0, c); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	none("interrupted")
	if _, err := toFile(t.Context(), "backup", 0, c); err == nil || !strings.Contains(err.Error(), "absolute path") {
		t.Errorf("a relative path: %v", err)
	}
	if err := os.WriteFile(path+partialSuffix, []byte("of a killed service"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := toFile(t.Context(), path, 0, c); err != nil {
		t.Error(err)
	}
}

// An error of the place to which a backup is copied is reported as it is, and not as one of the backup.
func TestCopyToAFullDisk(t *testing.T) {
	c, _ := newContent(t)
	var whole bytes.Buffer
	if _, err := Write(t.Context(), &whole, c); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space")
	if _, err := Copy(failing{full}, &whole, nil); err != full {
		t.Errorf("%v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
