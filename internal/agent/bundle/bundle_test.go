package bundle

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// read returns the files of the archive of a source.
func read(t *testing.T, s Source) (names []string, texts map[string]string) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		texts[f.Name] = string(text)
	}
	return names, texts
}

func write(t *testing.T, text string, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchive(t *testing.T) {
	base := t.TempDir()
	game, own := filepath.Join(base, "game"), filepath.Join(base, "own")
	write(t, "a", game, "logs", "a.log")
	write(t, "b", game, "logs", "deep", "b.log")
	write(t, "no", game, "server")
	write(t, "mine", own, "mine.log")
	secret := write(t, "secret", base, "secret")
	s := Source{
		Title: "Logs of p", Output: []string{write(t, "one\n", base, "o1"), filepath.Join(base, "missing"), write(t, "two\n", base, "o0")},
		Paths: []string{"logs", filepath.Join(game, "logs", "a.log"), own, secret, "../secret", "absent.log", "/"},
		Dirs:  []Dir{{"game", game}, {"log_dir", own}},
	}
	if runtime.GOOS != "windows" {
		for link, to := range map[string]string{"out.log": secret, "up": base, "in.log": "a.log"} {
			if err := os.Symlink(to, filepath.Join(game, "logs", link)); err != nil {
				t.Fatal(err)
			}
		}
		s.Paths = append(s.Paths, "logs/up/secret")
	}
	names, texts := read(t, s)
	want := []string{"output.log", "game/logs/a.log", "game/logs/deep/b.log", "game/logs/in.log", "log_dir/mine.log", "ReadMe.txt"}
	if runtime.GOOS == "windows" {
		want = slices.Delete(want, 3, 4)
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if texts["output.log"] != "one\ntwo\n" || texts["game/logs/deep/b.log"] != "b" {
		t.Errorf("got %v", texts)
	}
	for _, part := range []string{"Logs of p\n", "Invalid Log Path: " + secret, "Invalid Log Path: ../secret", "absent.log", "Invalid Log Path: /"} {
		if !strings.Contains(texts["ReadMe.txt"], part) {
			t.Errorf("%q is not in\n%s", part, texts["ReadMe.txt"])
		}
	}
	for name, text := range texts {
		if strings.Contains(text, "secret") && name != "ReadMe.txt" {
			t.Errorf("%s has what lies outside: %s", name, text)
		}
	}
}

func TestBoundsOfAnArchive(t *testing.T) {
	base := t.TempDir()
	for i := range filesMax + 300 {
		write(t, "x", base, "many", fmt.Sprintf("%04d", i))
	}
	big := write(t, "", base, "big.log")
	if err := os.Truncate(big, bytesMax+10); err != nil {
		t.Fatal(err)
	}
	long := write(t, "", base, "output")
	if err := os.Truncate(long, outputMax+7); err != nil {
		t.Fatal(err)
	}
	_, texts := read(t, Source{Output: []string{long}, Paths: []string{"big.log", "many"}, Dirs: []Dir{{"game", base}}})
	if n := len(texts["output.log"]); n != outputMax {
		t.Errorf("%d bytes of output", n)
	}
	if n := len(texts["game/big.log"]); n != bytesMax-outputMax {
		t.Errorf("%d bytes of the file", n)
	}
	readMe := texts["ReadMe.txt"]
	for _, part := range []string{"output.log: its first 7 bytes", fmt.Sprintf("big.log: its first %d bytes", outputMax+10), "many/0000: its first 1 bytes", "and "} {
		if !strings.Contains(readMe, part) {
			t.Errorf("%q is not in\n%.1000s", part, readMe)
		}
	}
	if n := strings.Count(readMe, "\n"); n > notesMax+5 {
		t.Errorf("ReadMe.txt has %d lines", n)
	}

	_, texts = read(t, Source{Paths: []string{"many"}, Dirs: []Dir{{"game", base}}})
	if n := len(texts); n != filesMax+2 || !strings.Contains(texts["ReadMe.txt"], fmt.Sprintf("many/%04d: the archive has %d files", filesMax, filesMax)) {
		t.Errorf("%d files\n%.500s", n, texts["ReadMe.txt"])
	}
}

// Of a directory with more entries than are examined, no more are in memory.
func TestHugeDirectory(t *testing.T) {
	files := fstest.MapFS{}
	for i := range entriesMax + 1000 {
		files[fmt.Sprint("logs/", i)] = &fstest.MapFile{}
	}
	if all, err := fs.ReadDir(bounded{files}, "logs"); err != nil || len(all) != entriesMax+1 {
		t.Errorf("%d entries, %v", len(all), err)
	}
}
