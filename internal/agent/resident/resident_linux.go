package resident

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Release unmaps the pages of the program's file. When the program uses a page again, the kernel maps it from the page cache with a few neighbours,
// but no huge pages.
func Release() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, m := range unchanged(smaps, program) {
		advise(m, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses, and needs no advice
		if err := advise(m, unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("unmap %x bytes of %s at %x: %w", m.length, program, m.start, err)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ start, length uintptr }

func advise(m mapping, advice uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.length, advice); errno != 0 {
		return errno
	}
	return nil
}

// unchanged returns the mappings of a file that are not writable and have no anonymous pages. Unmapping them loses nothing, because the file has
// their content; it would lose the relocations of a dynamic loader, for example.
func unchanged(smaps []byte, file string) (all []mapping) {
	var m mapping // zero: not one of those
	for line := range bytes.Lines(smaps) {
		fields := strings.Fields(string(line))
		switch {
		case len(fields) < 2:
		case !strings.HasSuffix(fields[0], ":"): // 00400000-01b6b000 r-xp 00000000 fe:00 9977905    /usr/bin/muster
			m = mapping{}
			if len(fields) >= 6 && strings.HasPrefix(fields[1], "r-") && strings.HasSuffix(fields[1], "p") && strings.Join(fields[5:], " ") == file {
				m = parseRange(fields[0])
			}
		case fields[0] == "Anonymous:" && m.length > 0: // pages that are no longer the file's, in kB
			if fields[1] == "0" {
				all = append(all, m)
			}
			m = mapping{}
		}
	}
	return all
}

func parseRange(text string) mapping {
	first, end, _ := strings.Cut(text, "-")
	from, err1 := strconv.ParseUint(first, 16, 64)
	to, err2 := strconv.ParseUint(end, 16, 64)
	if err1 != nil || err2 != nil || to <= from {
		return mapping{}
	}
	return mapping{start: uintptr(from), length: uintptr(to - from)}
}
