package buildfiles

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Scanned is a directory as a build, and where its parts are.
type Scanned struct {
	Manifest Manifest
	parts    map[Digest]source
}

type source struct {
	path string
	at   int64
	size int64
}

// Scan reads a directory. A link to a file in it counts as that file, since a build has no links. Rejected are links to directories, to nothing, and to what is outside:
// a build would have files that its maker did not mean to give away, and others on each machine that pushes it.
func Scan(dir string) (*Scanned, error) {
	s := &Scanned{parts: map[Digest]source{}}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return s, err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		if entry.Type()&fs.ModeSymlink != 0 {
			if path, err = target(dir, path, name); err != nil {
				return err
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return reject("%s is not a file: a build has plain files and directories only", name)
		}
		if err := CheckPath(name); err != nil {
			return err
		}
		f, err := s.file(path)
		f.Path, f.Executable = name, info.Mode()&0o111 != 0 || filepath.Separator == '\\'
		s.Manifest.Files = append(s.Manifest.Files, f)
		return err
	})
	return s, err
}

// target returns the file that a link stands for.
func target(dir, link, name string) (string, error) {
	path, err := filepath.EvalSymlinks(link)
	if err != nil {
		return "", reject("%s is a link that leads nowhere: %v", name, err)
	}
	if within, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(within) {
		return "", reject("%s is a link to %s, outside of the directory of the build", name, path)
	}
	return path, nil
}

func (s *Scanned) file(path string) (File, error) {
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	at := int64(0)
	return Split(in, SizeMax, func(d Digest, content []byte) error {
		s.parts[d] = source{path, at, int64(len(content))}
		at += int64(len(content))
		return nil
	})
}

// Part reads a part again. The error says so if its file has changed since the scan.
func (s *Scanned) Part(d Digest) ([]byte, error) {
	from, ok := s.parts[d]
	if !ok {
		return nil, fmt.Errorf("part %s is not in the directory", d)
	}
	in, err := os.Open(from.path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	content := make([]byte, from.size)
	if _, err := in.ReadAt(content, from.at); err != nil && err != io.EOF {
		return nil, err
	}
	if DigestOf(content) != d {
		return nil, fmt.Errorf("%s changed while it was pushed", from.path)
	}
	return content, nil
}
