package output

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var start = time.Unix(1_800_000_000, 0)

// small rotates at 256 KiB, in blocks of 64.
var small = Policy{Size: 256 << 10, Files: 4, Pause: time.Second}

// open returns a log, and the file as the process has it.
func open(t *testing.T, policy Policy) (*Log, *os.File) {
	t.Helper()
	l := New(t.TempDir(), policy)
	w, err := l.Writer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return l, w
}

// lines writes numbered lines of 64 bytes.
func lines(t *testing.T, w *os.File, from, to int) {
	t.Helper()
	var text bytes.Buffer
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, "%063d\n", i)
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// all returns everything that is kept, the oldest first.
func all(t *testing.T, l *Log) string {
	t.Helper()
	var text strings.Builder
	for i := l.policy.Files + 1; i >= 0; i-- {
		part, err := os.ReadFile(l.path(i))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		text.Write(part)
	}
	return text.String()
}

func numbered(from, to int) string {
	var text strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, "%063d\n", i)
	}
	return text.String()
}

func TestRotationLosesNothing(t *testing.T) {
	l, w := open(t, small)
	now, n := start, 0
	for range 5 {
		lines(t, w, n, n+2100) // 134 KB
		n += 2100
		now = now.Add(time.Second)
		if floods, err := l.Trim(now); err != nil || floods {
			t.Fatalf("trim: %v, floods %v", err, floods)
		}
	}
	if got := all(t, l); got != numbered(0, n) {
		t.Fatalf("%d bytes kept, want all %d in order", len(got), 64*n)
	}
	if l.Dropped != 0 {
		t.Errorf("dropped %d", l.Dropped)
	}
}

func TestOnlyTheNewestFilesAreKept(t *testing.T) {
	l, w := open(t, small)
	now, n := start, 0
	for range 40 {
		lines(t, w, n, n+2100)
		n += 2100
		now = now.Add(time.Second)
		if _, err := l.Trim(now); err != nil {
			t.Fatal(err)
		}
	}
	entries, _ := os.ReadDir(l.dir)
	if len(entries) != small.Files {
		t.Errorf("%d files, want %d", len(entries), small.Files)
	}
	got := all(t, l)
	if !strings.HasSuffix(numbered(0, n), got) || int64(len(got)) < small.Size*2 || int64(len(got)) > small.Size*2*4 {
		t.Errorf("%d bytes kept, want the newest", len(got))
	}
}

func TestFloodIsBounded(t *testing.T) {
	l, w := open(t, small)
	now, n, flooded := start, 0, false
	for range 30 {
		lines(t, w, n, n+20000) // 1.28 MB in 0.1 s
		n += 20000
		now = now.Add(100 * time.Millisecond)
		floods, err := l.Trim(now)
		if err != nil {
			t.Fatal(err)
		}
		flooded = flooded || floods
		if info, _ := w.Stat(); info.Size() > 2*small.Size {
			t.Fatalf("after a trim the file has %d bytes, want at most %d", info.Size(), 2*small.Size)
		}
	}
	kept := int64(len(all(t, l)))
	if !flooded || l.Dropped == 0 || kept > int64(small.Files+1)*2*small.Size {
		t.Errorf("flooded %v, dropped %d, kept %d", flooded, l.Dropped, kept)
	}
	end, err := l.Tail(1024)
	if err != nil || string(end) != numbered(n-16, n) {
		t.Errorf("tail: %v, %d bytes, want the last lines", err, len(end))
	}
}

func TestTailReachesIntoTheRotatedFile(t *testing.T) {
	l, w := open(t, small)
	lines(t, w, 0, 8000)
	if _, err := l.Trim(start); err != nil {
		t.Fatal(err)
	}
	lines(t, w, 8000, 8001)
	got, err := l.Tail(TailMax)
	if err != nil || string(got) != numbered(8001-TailMax/64, 8001) {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	short, w2 := open(t, small)
	if _, err := w2.WriteString("ab"); err != nil {
		t.Fatal(err)
	}
	if got, err := short.Tail(TailMax); err != nil || string(got) != "ab" {
		t.Fatalf("short: %q, %v", got, err)
	}
}

func TestReadFollowsThroughRotations(t *testing.T) {
	l, w := open(t, small)
	var got bytes.Buffer
	var at int64
	buffer := make([]byte, 50_000)
	read := func() {
		for {
			n, next, err := l.Read(buffer, at)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				return
			}
			got.Write(buffer[:n])
			at = next
		}
	}
	now, n := start, 0
	for i := range 12 {
		lines(t, w, n, n+2100)
		n += 2100
		if i%2 == 0 { // also: two rotations' worth between two reads
			read()
		}
		now = now.Add(time.Second)
		if _, err := l.Trim(now); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if got.String() != numbered(0, n) {
		t.Fatalf("read %d bytes, want all %d", got.Len(), 64*n)
	}
	if _, end, err := l.TailEnd(0); err != nil || end != at {
		t.Errorf("end %d, %v, want %d", end, err, at)
	}
	lines(t, w, n, n+10)
	if n, next, err := l.Read(buffer, 0); err != nil || n == 0 || next <= int64(n) {
		t.Errorf("from an offset long gone: %d bytes up to %d, %v", n, next, err)
	}
}

// TestEmptyTheWholeFile covers file systems that cannot remove the beginning of a file.
// A reader that begins with the tail misses nothing of a process that writes meanwhile.
func TestReadContinuesAfterTheTail(t *testing.T) {
	l, w := open(t, Default())
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				fmt.Fprintf(w, "%07d\n", i)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	line := func(text []byte) (n int) {
		if _, err := fmt.Sscanf(string(text), "%d\n", &n); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return n
	}
	for range 200 {
		tail, at, err := l.TailEnd(8)
		if err != nil {
			t.Fatal(err)
		}
		next := make([]byte, 8)
		for n := 0; n < len(next); {
			if n, _, err = l.Read(next, at); err != nil {
				t.Fatal(err)
			}
		}
		if len(tail) == 8 && line(next) != line(tail)+1 {
			t.Fatalf("after %q comes %q", tail, next)
		}
	}
}

func TestEmptyTheWholeFile(t *testing.T) {
	l, w := open(t, small)
	lines(t, w, 0, 10)
	file, err := os.OpenFile(l.path(0), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	to, err := os.Create(l.path(1))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if n, err := cut(file, 640, to); err != nil || n != 640 { // less than a block
		t.Fatalf("cut %d, %v", n, err)
	}
	lines(t, w, 10, 20)
	if got := all(t, l); got != numbered(0, 20) {
		t.Errorf("got %q", got)
	}
}

func TestPrune(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	make := func(name string, bytes int, age time.Duration) {
		dir := filepath.Join(root, name)
		os.Mkdir(dir, 0o700)
		path := filepath.Join(dir, "output.log")
		os.WriteFile(path, bytes0(bytes), 0o600)
		if name == "other" {
			os.Rename(path, filepath.Join(dir, "precious"))
			path = filepath.Join(dir, "precious")
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	make("runs", 500, 90*time.Hour)
	make("old", 1, 80*time.Hour)
	make("other", 500, 80*time.Hour)
	make("new", 60, time.Hour)
	make("second", 30, 2*time.Hour)
	make("third", 30, 3*time.Hour)
	err := Prune(root, Keep{Bytes: 100, Count: 10, Age: 70 * time.Hour}, func(dir string) bool { return dir == "runs" }, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names(root)); got != "[new other runs second]" {
		t.Errorf("left: %s", got)
	}
	if err := Prune(root, Keep{Bytes: 100, Count: 1, Age: 70 * time.Hour}, func(string) bool { return false }, now); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names(root)); got != "[new other]" {
		t.Errorf("left of one: %s", got)
	}
}

func bytes0(n int) []byte { return make([]byte, n) }

func names(root string) (list []string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
