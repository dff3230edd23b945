package doctor

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// networkDisks are types of network file systems, from linux/magic.h.
var networkDisks = map[int64]string{unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9p"}

// volatileDisk returns the type of a directory's file system if it is unsuitable for a database, and whether it loses its content on a restart.
func volatileDisk(dir string) (kind string, lost bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "", false
	}
	switch t := int64(s.Type); t {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "a file system in memory", true
	default:
		return networkDisks[t], false
	}
}

func diskSpace(dir string) (free, total uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), true
}

// clockState asks the kernel whether a time service synchronizes the clock, and the maximum error of the clock.
func clockState() (synchronized bool, errorMax time.Duration, ok bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, 0, false
	}
	return t.Status&unix.STA_UNSYNC == 0, time.Duration(t.Maxerror) * time.Microsecond, true
}

// listener returns the process that listens on a TCP port of this machine, if this user can see it.
func listener(port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	want := fmt.Sprintf(":%04X", n)
	inodes := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			const listens = "0A"
			if f := strings.Fields(lines.Text()); len(f) > 9 && f[3] == listens && strings.HasSuffix(f[1], want) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		files, err := os.ReadDir("/proc/" + p.Name() + "/fd")
		if err != nil {
			continue // of another user, or gone
		}
		for _, f := range files {
			if to, err := os.Readlink("/proc/" + p.Name() + "/fd/" + f.Name()); err == nil && inodes[to] {
				name, _ := os.ReadFile("/proc/" + p.Name() + "/comm")
				return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), p.Name())
			}
		}
	}
	return ""
}
