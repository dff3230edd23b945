package export

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// newArchive returns an archive with placements that ended a second apart, some of them stored twice.
func newArchive(t *testing.T, n int) (archive.Archive, Head) {
	t.Helper()
	a, err := archivetest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Hour).Truncate(time.Second).UnixMilli()
	for i := range n {
		at := began + int64(i)*1000
		p := placement.Placement{ID: fmt.Sprintf("placement-%04d", i), Queue: "cup", Status: placement.Fulfilled, Start: domain.Time(at - 1), End: domain.Time(at)}
		r := archive.Record{Kind: archive.Placement, ID: p.ID, Created: at - 1, Ended: at, Data: wire.Append(nil, &p)}
		for range 1 + i%2 {
			if err := a.Put(t.Context(), []archive.Record{r}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return a, Head{Installation: uuid.New(), From: began, Until: began + int64(n)*1000}
}

func stream(t *testing.T, a archive.Archive, h Head, kinds ...string) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	if err := Write(t.Context(), out, a, h, kinds); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// ids returns the ids of all exported lines, in order.
func ids(t *testing.T, text []byte) (all []string) {
	t.Helper()
	for text := range bytes.Lines(text) {
		var x struct{ ID string }
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, x.ID)
	}
	return all
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Wherever a run is interrupted, the runs together have each record once, in order.
func TestEachRecordOnce(t *testing.T) {
	a, h := newArchive(t, 300)
	whole := stream(t, a, h)
	for _, name := range []string{"all.jsonl", "all.jsonl.gz", "dir"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			read := func(in io.Reader) error {
				kinds := []string{"placements"}
				var s Store = &File{Path: path, Kinds: kinds}
				if name == "dir" {
					s = &Dir{Path: path, Kinds: kinds}
				}
				_, _, err := Read(in, &eager{s})
				return err
			}
			cursor := func() *Cursor {
				t.Helper()
				file := path + ".cursor"
				if name == "dir" {
					file = filepath.Join(path, cursorName)
				}
				c, err := ReadCursor(file)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			rest := whole
			for cut := 100; cut < len(rest); cut += 2000 { // of each run a part arrives
				if err := read(bytes.NewReader(rest[:cut])); err == nil {
					t.Fatalf("a stream that was cut after %d bytes was taken for a whole one", cut)
				}
				if c := cursor(); c != nil {
					rest = stream(t, a, Head{h.Installation, c.Until.UnixMilli(), h.Until})
				}
			}
			if err := read(bytes.NewReader(rest)); err != nil {
				t.Fatal(err)
			}
			var text []byte
			switch name {
			case "all.jsonl":
				text, _ = os.ReadFile(path) // an empty one has no ids
			case "all.jsonl.gz":
				text = unzipped(t, path)
			default:
				files, err := filepath.Glob(filepath.Join(path, "placements", "*"))
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(files)
				for _, file := range files {
					text = append(text, unzipped(t, file)...)
				}
			}
			var want []string
			for i := range 300 {
				want = append(want, fmt.Sprintf("placement-%04d", i))
			}
			if got := ids(t, text); !slices.Equal(got, want) {
				t.Errorf("%d records, want %d: %q", len(got), len(want), got)
			}
			if c := cursor(); c.Until.UnixMilli() != h.Until {
				t.Errorf("the cursor is at %s", c.Until)
			}
			other := stream(t, a, Head{uuid.New(), h.Until, h.Until})
			if err := read(bytes.NewReader(other)); err == nil || !strings.Contains(err.Error(), "from installation") {
				t.Errorf("of another installation: %v", err)
			}
		})
	}
}

// eager begins new files all the time.
type eager struct{ Store }

func (e *eager) Complete(until int64, last bool) error {
	switch s := e.Store.(type) {
	case *Dir:
		s.bytes += fileBytes
	case *File:
		s.bytes += fileBytes
	}
	return e.Store.Complete(until, last)
}

// The first run to a directory is killed after its first files got their names, and before the cursor was moved behind them. The next run replaces them,
// although the oldest record that the service has is another one by then.
func TestKilledBeforeTheFirstCursor(t *testing.T) {
	a, h := newArchive(t, 10)
	d := &Dir{Path: t.TempDir(), Kinds: []string{"placements"}}
	var before []byte
	s := &steps{d, func(complete func() error) error {
		before, _ = os.ReadFile(d.CursorPath()) // nil: there is none
		return complete()
	}}
	if _, _, err := Read(bytes.NewReader(stream(t, a, h)), s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.CursorPath(), before, 0o600); err != nil {
		t.Fatal(err)
	}
	if before == nil {
		os.Remove(d.CursorPath())
	}
	c, err := ReadCursor(d.CursorPath())
	if err != nil {
		t.Fatal(err)
	}
	h.From += 2000 // the oldest that the service has
	if c != nil {
		h.From = max(h.From, c.Until.UnixMilli())
	}
	if _, _, err := Read(bytes.NewReader(stream(t, a, h)), &Dir{Path: d.Path, Kinds: d.Kinds}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(d.Path, "placements", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	if got := ids(t, unzipped(t, files[0])); len(got) != 8 {
		t.Errorf("got %q", got)
	}
}

// steps is a store whose only Complete is done by a function.
type steps struct {
	*Dir
	do func(complete func() error) error
}

func (s *steps) Complete(until int64, last bool) error {
	if !last {
		return nil
	}
	return s.do(func() error { return s.Dir.Complete(until, last) })
}

// A file that has no cursor is not an export's, and stays as it is.
func TestForeignFile(t *testing.T) {
	a, h := newArchive(t, 3)
	path := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _, err := Read(bytes.NewReader(stream(t, a, h)), &File{Path: path})
		text, _ := os.ReadFile(path) // it is compared
		if !errors.Is(err, os.ErrExist) || string(text) != "mine" {
			t.Errorf("%v; the file has %q", err, text)
		}
	}
	if _, err := os.Stat(path + partial); err == nil {
		t.Error("the export has left the mark of its own files")
	}
}

// Without its first cursor, as on a full disk, the file of an export is still known as one, and the next run replaces it.
func TestNoFirstCursor(t *testing.T) {
	a, h := newArchive(t, 3)
	path := filepath.Join(t.TempDir(), "all.jsonl")
	whole := stream(t, a, h)
	if _, _, err := Read(bytes.NewReader(whole), &noCursor{File{Path: path, Kinds: []string{"placements"}}}); err == nil {
		t.Error("an export without a cursor is complete")
	}
	if err := os.RemoveAll(path + ".cursor"); err != nil {
		t.Fatal(err)
	}
	if n, _, err := Read(bytes.NewReader(whole), &File{Path: path, Kinds: []string{"placements"}}); n != 3 || err != nil {
		t.Errorf("the next run: %d records, %v", n, err)
	}
}

// noCursor has a directory in the place of its cursor.
type noCursor struct{ File }

func (s *noCursor) Complete(until int64, last bool) error {
	if err := os.MkdirAll(filepath.Join(s.CursorPath(), "x"), 0o700); err != nil {
		return err
	}
	return s.File.Complete(until, last)
}

// Unselected kinds are left out, and so are records outside of the period and those of the audit log.
func TestWhatIsExported(t *testing.T) {
	a, h := newArchive(t, 10)
	put := func(r archive.Record) {
		t.Helper()
		if err := a.Put(t.Context(), []archive.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	put(archive.Record{Kind: archive.AuditEntry, ID: "12345678", Created: h.From, Ended: h.From})
	game := session.GameSession{ID: "fleet-1/gsess-1", FleetID: "fleet-1", Status: session.Terminated, Cause: session.EndedByCrash, Properties: []session.Property{{Key: "map", Value: "castle"}}, Created: 1000, Ended: domain.Time(h.From)}
	put(archive.Record{Kind: archive.GameSession, ID: "g", Created: h.From, Ended: h.From, Data: wire.Append(nil, &game)})
	roster := matchmaking.EncodeRoster([]matchmaking.Player{{ID: "ann", Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: 7}}}, Latencies: []matchmaking.Latency{{Region: "eu", Milliseconds: 40}}}})
	ticket := matchmaking.Ticket{ID: "t", Configuration: "duel", Status: matchmaking.Completed, Roster: roster, Players: 1, Outcome: &matchmaking.Outcome{Match: "m", Team: "red", Answers: []byte{byte(matchmaking.Accepted)}}}
	put(archive.Record{Kind: archive.Ticket, ID: "t", Created: h.From, Ended: h.From, Data: wire.Append(nil, &ticket)})
	out := &bytes.Buffer{}
	h.Until = h.From + 2000
	if _, _, err := Read(bytes.NewReader(stream(t, a, h)), &Pipe{To: out}); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, out.Bytes()); !slices.Equal(got, []string{"fleet-1/gsess-1", "placement-0000", "t", "placement-0001"}) {
		t.Errorf("exported %q", got)
	}
	for _, part := range []string{`"cause":"SERVER_CRASHED"`, `"properties":{"map":"castle"}`, `"created_at":"1970-01-01T00:00:01.000Z"`, `"activated_at":null`,
		`"players":[{"player":"ann","team":"red","accepted":true,"player_session":"","attributes":{"skill":7},"latencies_ms":{"eu":40}}]`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s is not in %s", part, out)
		}
	}
	out.Reset()
	if n, _, err := Read(bytes.NewReader(stream(t, a, h, "tickets")), &Pipe{To: out}); err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
}

// TestColumnsPage: the page names each column.
func TestColumnsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "export.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range []any{gameSession{}, playerSession{}, placementRecord{}, ticket{}, playerChange{}} {
		_, line, found := strings.Cut(string(page), "\n| `"+Kinds[i]+"` |")
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("%s is not on the page", Kinds[i])
		}
		for _, name := range columns(reflect.TypeOf(row)) {
			if name != "kind" && !strings.Contains(line, "`"+name+"`") {
				t.Errorf("%s: column %s is not on the page", Kinds[i], name)
			}
		}
	}
}

func columns(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		names = append(names, f.Tag.Get("json"))
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			names = append(names, columns(f.Type.Elem())...)
		}
	}
	return names
}
