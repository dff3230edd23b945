//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user and group of a file.
type owner struct{ uid, gid int }

func ownerOfFile(info os.FileInfo) owner {
	s := info.Sys().(*syscall.Stat_t)
	return owner{int(s.Uid), int(s.Gid)}
}

func (o owner) isRoot() bool { return o.uid == 0 }

func (o owner) String() string { return "user " + strconv.Itoa(o.uid) }

// become changes this process to the owner permanently.
func (o owner) become() error {
	if err := syscall.Setgroups([]int{o.gid}); err != nil {
		return err
	}
	if err := syscall.Setgid(o.gid); err != nil {
		return err
	}
	return syscall.Setuid(o.uid)
}

// own changes the owner of a directory and everything in it.
func (o owner) own(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, o.uid, o.gid)
		}
		return err
	})
}

func isRoot() bool { return os.Geteuid() == 0 }
