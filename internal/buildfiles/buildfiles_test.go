package buildfiles

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
)

func noise(seed uint64, size int) []byte {
	content := make([]byte, size)
	chance := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = chance.Read(content) // cannot fail
	return content
}

func split(t *testing.T, content []byte) (File, map[Digest][]byte) {
	t.Helper()
	stored := map[Digest][]byte{}
	f, err := Split(bytes.NewReader(content), 1<<40, func(d Digest, part []byte) error {
		stored[d] = bytes.Clone(part)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, stored
}

func TestPartsMakeTheFile(t *testing.T) {
	for _, size := range []int{0, 1, partMin - 1, partMin, partMin + 1, PartMax, 3*PartMax + 17} {
		content := noise(1, size)
		f, stored := split(t, content)
		var joined []byte
		for i, p := range f.Parts {
			if last := i == len(f.Parts)-1; p.Size > PartMax || p.Size < partMin && !last {
				t.Errorf("%d bytes: part %d has %d", size, i, p.Size)
			}
			joined = append(joined, stored[p.Digest]...)
		}
		if !bytes.Equal(joined, content) || f.Size != int64(size) || f.Digest != DigestOf(content) {
			t.Errorf("%d bytes: the parts make %d bytes with %s", size, len(joined), f.Digest)
		}
	}
	if f, _ := split(t, make([]byte, 2*PartMax)); len(f.Parts) != 2 {
		t.Errorf("zeros have %d parts, want 2 of the largest size", len(f.Parts))
	}
}

// An insertion at the beginning changes the parts around it, and leaves the others as they are.
func TestPartsBehindAnInsertionAreShared(t *testing.T) {
	content := noise(2, 40<<20)
	_, before := split(t, content)
	after, _ := split(t, append([]byte("a line more"), content...))
	fresh := 0
	for _, p := range after.Parts {
		if before[p.Digest] == nil {
			fresh++
		}
	}
	if fresh > 2 || len(after.Parts) < 8 {
		t.Errorf("%d of %d parts are new, want at most 2", fresh, len(after.Parts))
	}
}

// The cuts are part of the format: with other cuts a new release would share no parts with stored builds.
func TestCutsStayWhereTheyAre(t *testing.T) {
	f, _ := split(t, noise(3, 16<<20))
	var sizes []int64
	for _, p := range f.Parts {
		sizes = append(sizes, p.Size)
	}
	if got, want := fmt.Sprint(sizes), "[1355064 728743 1908941 852361 2377892 2904178 1195044 4323210 1131783]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLongerThanTheLimit(t *testing.T) {
	for limit, ok := range map[int64]bool{0: false, 99: false, 100: true, 101: true} {
		_, err := Split(bytes.NewReader(noise(4, 100)), limit, func(Digest, []byte) error { return nil })
		if _, rejected := errors.AsType[*Rejected](err); rejected == ok {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestManifest(t *testing.T) {
	one, two := DigestOf([]byte("1")), DigestOf([]byte("2"))
	m := &Manifest{Files: []File{
		{Path: "server/start.sh", Executable: true, Size: 1, Digest: one, Parts: []Part{{one, 1}}},
		{Path: "data.pak", Size: 2, Digest: DigestOf([]byte("12")), Parts: []Part{{one, 1}, {two, 1}}},
		{Path: "empty", Digest: DigestOf(nil)},
	}}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	_ = again.Parts(func(Part) error { parts++; return nil })
	if again.Size() != 3 || again.Files[0].Path != "data.pak" || parts != 2 {
		t.Errorf("got %+v with %d parts", again, parts)
	}
	whole := string(text)
	for name, text := range map[string]string{
		"no files":              `{"files":[]}`,
		"two values":            whole + `{}`,
		"an unknown field":      strings.Replace(whole, `"size"`, `"mode":1,"size"`, 1),
		"another order":         strings.Replace(whole, `data.pak`, `zdata.pak`, 1),
		"a size that is wrong":  strings.Replace(whole, `"size":2`, `"size":3`, 1),
		"a negative size":       strings.Replace(whole, `"size":1`, `"size":-1`, 1),
		"a digest that is none": strings.Replace(whole, one.String(), "../../../etc/passwd", 1),
		"a digest in capitals":  strings.ReplaceAll(whole, one.String(), strings.ToUpper(one.String())),
		"a file of its own":     strings.Replace(whole, `"digest":"`+one.String()+`","parts"`, `"digest":"`+two.String()+`","parts"`, 1),
	} {
		if text == whole {
			t.Fatalf("%s: the test changes nothing", name)
		}
		if _, err := ParseManifest([]byte(text)); err == nil {
			t.Errorf("%s is accepted: %s", name, text)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, path := range []string{"a", "a/b", ".hidden", "a..b", "with space/ü", "lib.so.1", "console", "com", strings.Repeat("a", 255)} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../a", "a/../../b", "a/./b", `..\a`, `C:\a`, "C:a", "a:stream", "a\x00", "a\nb", "a\xff", "dot.", "space ",
		"CON", "nul.txt", "a/com1", "lpt9.x", "aux .txt", strings.Repeat("a", 256), strings.Repeat("a/", 600) + "a", strings.Repeat("a/", 64) + "a",
	} {
		if err := CheckPath(path); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
}

func TestPathsThatAreOneFile(t *testing.T) {
	for _, paths := range [][]string{{"a", "a"}, {"a", "A"}, {"a", "a/b"}, {"a/b", "a"}, {"A/b", "a/c"}, {"a/b/c", "a/B"}, {"x/a", "X/A"}, {"ſ", "s"}} {
		names := newNames()
		err := names.add(paths[0])
		if err == nil {
			err = names.add(paths[1])
		}
		if err == nil {
			t.Errorf("%q are accepted", paths)
		}
	}
	names := newNames()
	for _, path := range []string{"a/b/c", "a/b/d", "a/e", "f"} {
		if err := names.add(path); err != nil {
			t.Error(err)
		}
	}
}

// entry is an entry of a zip that tests make.
type entry struct {
	name    string
	content string
	mode    fs.FileMode
	dos     bool // made by a system without modes
}

func zipped(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		} else if !e.dos {
			h.SetMode(0o644)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unzip(archive []byte, limit int64) (*Manifest, error) {
	return Unzip(bytes.NewReader(archive), int64(len(archive)), limit, func(Digest, []byte) error { return nil })
}

func TestUnzip(t *testing.T) {
	m, err := unzip(zipped(t, entry{name: "server/start", content: "run", mode: 0o755}, entry{name: "server/", mode: fs.ModeDir | 0o755}, entry{name: "a.cfg", content: "x"}, entry{name: "win.exe", dos: true}), 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range m.Files {
		got = append(got, fmt.Sprintf("%s:%t:%d", f.Path, f.Executable, f.Size))
	}
	if want := "[a.cfg:false:1 server/start:true:3 win.exe:true:0]"; fmt.Sprint(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestHostileZips(t *testing.T) {
	good := zipped(t, entry{name: "a", content: strings.Repeat("muster", 1000)})
	damaged := bytes.Clone(good)
	damaged[60]++
	lies := bytes.Clone(good) // its list says that the file has one byte
	at := bytes.LastIndex(lies, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(lies[at+24:], 1)
	for name, archive := range map[string][]byte{
		"nothing":         {},
		"no zip":          []byte("MZ this is no zip"),
		"cut off":         good[:len(good)-30],
		"damaged":         damaged,
		"a false size":    lies,
		"no files":        zipped(t),
		"a way out":       zipped(t, entry{name: "../../etc/cron.d/x", content: "x"}),
		"a way out of it": zipped(t, entry{name: "a/../../x", content: "x"}),
		"absolute":        zipped(t, entry{name: "/etc/passwd", content: "x"}),
		"a drive":         zipped(t, entry{name: `C:\Windows\x.dll`, content: "x"}),
		"backslashes":     zipped(t, entry{name: `..\x`, content: "x"}),
		"a link":          zipped(t, entry{name: "a", content: "/etc", mode: fs.ModeSymlink | 0o777}),
		"a device":        zipped(t, entry{name: "a", mode: fs.ModeDevice | 0o666}),
		"twice":           zipped(t, entry{name: "a", content: "x"}, entry{name: "a", content: "y"}),
		"case":            zipped(t, entry{name: "a", content: "x"}, entry{name: "A", content: "y"}),
		"file and folder": zipped(t, entry{name: "a", content: "x"}, entry{name: "a/b", content: "y"}),
		"a bomb":          zipped(t, entry{name: "zeros", content: strings.Repeat("\x00", 10<<20)}),
		"bombs":           zipped(t, entry{name: "1", content: strings.Repeat("\x00", 4<<20)}, entry{name: "2", content: strings.Repeat("\x00", 4<<20)}),
	} {
		m, err := unzip(archive, 5<<20)
		if err == nil {
			_, err = m.Encode()
		}
		if _, ok := errors.AsType[*Rejected](err); !ok {
			t.Errorf("%s: %v, want a rejection", name, err)
		}
	}
}

// The list of a zip is bounded before it is in memory.
func TestUnzipWithTooLongAList(t *testing.T) {
	list := bytes.Repeat(append([]byte("PK\x01\x02"), make([]byte, 42)...), directoryMax/46+1)
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], 1)
	binary.LittleEndian.PutUint16(end[10:], 1)
	binary.LittleEndian.PutUint32(end[12:], uint32(len(list)))
	_, err := unzip(append(list, end...), 1<<20)
	if r, ok := errors.AsType[*Rejected](err); !ok || !strings.Contains(r.Reason, "list of files") {
		t.Errorf("got %v", err)
	}
}

// An error of the disk is not the fault of the zip.
func TestUnzipFromABrokenDisk(t *testing.T) {
	archive := zipped(t, entry{name: "a", content: string(noise(5, 1<<20))})
	broken := errors.New("input/output error")
	for _, from := range []int64{0, 100, int64(len(archive)) - 50} {
		_, err := Unzip(&brokenBefore{bytes.NewReader(archive), int64(len(archive)) - from, broken}, int64(len(archive)), 1<<30, func(Digest, []byte) error { return nil })
		if !errors.Is(err, broken) {
			t.Errorf("from %d: %v", from, err)
		}
	}
	full := errors.New("full")
	if _, err := Unzip(bytes.NewReader(archive), int64(len(archive)), 1<<30, func(Digest, []byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type brokenBefore struct {
	*bytes.Reader
	at  int64
	err error
}

func (b *brokenBefore) ReadAt(p []byte, at int64) (int, error) {
	if at < b.at {
		return 0, b.err
	}
	return b.Reader.ReadAt(p, at)
}
