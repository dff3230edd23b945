package resident

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestUnchanged(t *testing.T) {
	smaps := `00400000-01b6b000 r-xp 00000000 fe:00 99 /opt/a program
Rss:                1728 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01b6b000-03585000 r--p 0176b000 fe:00 99 /opt/a program
Anonymous:             4 kB
03585000-0365c000 rw-p 03185000 fe:00 99 /opt/a program
Anonymous:             0 kB
03700000-03701000 r--s 03185000 fe:00 99 /opt/a program
Anonymous:             0 kB
03800000-03801000 r--p 00000000 fe:00 98 /opt/a
Anonymous:             0 kB
7f6b0a73d000-7f6b0a7fd000 rw-p 00000000 00:00 0
Anonymous:           436 kB
7f6b0b000000-7f6b0b001000 r--p 00001000 fe:00 99 /opt/a program
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1b6b000 - 0x400000}, {0x7f6b0b000000, 0x1000}}
	if got := unchanged([]byte(smaps), "/opt/a program"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// All pages of this program are mapped. Release unmaps most of them, and the program continues.
func TestRelease(t *testing.T) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	found := unchanged(smaps, program)
	if len(found) == 0 {
		t.Fatalf("no mapping of %s in\n%s", program, smaps)
	}
	for _, m := range found { // reading maps a page
		if _, err := io.Copy(io.Discard, io.NewSectionReader(memory, int64(m.start), int64(m.length))); err != nil {
			t.Fatal(err)
		}
	}
	before := ofFiles(t)
	if err := Release(); err != nil {
		t.Fatal(err)
	}
	if after := ofFiles(t); after > before*3/4 {
		t.Errorf("%d kB of files are mapped, of %d before", after, before)
	}
}

var rssFile = regexp.MustCompile(`RssFile:\s+(\d+) kB`)

// ofFiles returns how much of files is mapped into this process, in kB.
func ofFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := rssFile.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no RssFile in\n%s", status)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(found[1])))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
