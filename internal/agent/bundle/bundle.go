// Package bundle writes the logs of a game session to a zip archive: the output of its server process, and the files at the paths that the process
// named. A server process must not be able to make the agent, which may run as root, read other files. So paths must be below the given directories,
// links that leave them are not followed, and only regular files are read. The size of the archive is bounded; ReadMe.txt lists what it lacks.
package bundle

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Limits of an archive.
const (
	bytesMax   = 64 << 20 // of all content, before it is compressed
	outputMax  = 16 << 20 // of output, within bytesMax: its end
	filesMax   = 1000
	entriesMax = 20_000 // directory entries that are examined
	notesMax   = 200    // lines in ReadMe.txt
)

// Dir is a directory in which log paths may lie.
type Dir struct {
	Name string // in the archive
	Path string
}

// Source describes the contents of an archive.
type Source struct {
	Title  string   // the first line of ReadMe.txt
	Output []string // files, the oldest first
	Paths  []string // files and directories, as the process named them; relative ones are below the first of Dirs
	Dirs   []Dir
}

// writer is an archive that is being written.
type writer struct {
	zip     *zip.Writer
	left    int64
	files   int
	entries int
	seen    map[string]bool
	notes   []string
	more    int // notes beyond notesMax
}

// Write writes the archive. It returns only errors of to and of the disk to which it writes; ReadMe.txt notes whatever cannot be read.
func Write(to io.Writer, s Source) error {
	w := &writer{zip: zip.NewWriter(to), left: bytesMax, seen: map[string]bool{}}
	if err := w.output(s.Output); err != nil {
		return err
	}
	for _, p := range s.Paths {
		if err := w.path(p, s.Dirs); err != nil {
			return err
		}
	}
	if w.more > 0 {
		w.notes = append(w.notes, fmt.Sprintf("and %d more", w.more))
	}
	into, err := w.zip.Create("ReadMe.txt")
	if err != nil {
		return err
	}
	text := s.Title + "\n"
	if len(w.notes) > 0 {
		text += "\nNot in this archive, or not all of it:\n" + strings.Join(w.notes, "\n") + "\n"
	}
	if _, err := io.WriteString(into, text); err != nil {
		return err
	}
	return w.zip.Close()
}

func (w *writer) note(format string, values ...any) {
	if len(w.notes) >= notesMax {
		w.more++
		return
	}
	w.notes = append(w.notes, fmt.Sprintf(format, values...))
}

// output writes the end of the output as a single file.
func (w *writer) output(files []string) error {
	skip, sizes := int64(-outputMax), make([]int64, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			sizes[i] = info.Size()
			skip += sizes[i]
		}
	}
	into, err := w.zip.Create("output.log")
	if err != nil {
		return err
	}
	if skip > 0 {
		w.note("output.log: its first %d bytes", skip)
	}
	for i, name := range files {
		if skip >= sizes[i] {
			skip -= sizes[i]
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			w.note("output.log: %v", err)
			continue
		}
		err = w.copy(into, file, max(skip, 0), sizes[i]-max(skip, 0))
		file.Close()
		if err != nil {
			return err
		}
		skip = 0
	}
	return nil
}

// copy writes a part of a file, which may have become shorter meanwhile. Read errors are noted in ReadMe.txt.
func (w *writer) copy(into io.Writer, file *os.File, from, n int64) error {
	read := &reading{file: io.NewSectionReader(file, from, n)}
	written, err := io.Copy(into, read)
	w.left -= written
	if read.err != nil {
		w.note("%s: %v", filepath.Base(file.Name()), read.err)
		return nil
	}
	return err
}

// reading distinguishes read errors from write errors.
type reading struct {
	file io.Reader
	err  error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.file.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// within returns the directory that contains a path, and the path relative to it.
func within(named string, dirs []Dir) (dir Dir, local string, ok bool) {
	full := filepath.FromSlash(named)
	if len(dirs) > 0 && !filepath.IsAbs(full) {
		full = filepath.Join(dirs[0].Path, full)
	}
	for _, d := range dirs {
		if local, err := filepath.Rel(d.Path, filepath.Clean(full)); err == nil && filepath.IsLocal(local) {
			return d, filepath.ToSlash(local), true
		}
	}
	return dir, "", false
}

// path writes the file or directory at a path that the process named.
func (w *writer) path(named string, dirs []Dir) error {
	dir, local, ok := within(named, dirs)
	if !ok {
		w.note("Invalid Log Path: %s", named)
		return nil
	}
	root, err := os.OpenRoot(dir.Path)
	if err != nil {
		w.note("%s: %v", named, err)
		return nil
	}
	defer root.Close()
	return fs.WalkDir(bounded{root.FS().(fs.StatFS)}, local, func(at string, entry fs.DirEntry, err error) error {
		w.entries++
		switch {
		case w.entries > entriesMax:
			w.note("%s: more than %d files and directories", named, entriesMax)
			return fs.SkipAll
		case err != nil:
			w.note("%s: %v", at, err)
			return nil
		case entry.IsDir():
			return nil
		}
		return w.file(root, dir.Name, at)
	})
}

// bounded reads no more of a directory than is examined, because a game server may have filled it with millions of files.
type bounded struct{ fs.StatFS }

// ReadDir implements fs.ReadDirFS.
func (b bounded) ReadDir(name string) ([]fs.DirEntry, error) {
	file, err := b.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dir, ok := file.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	entries, err := dir.ReadDir(entriesMax + 1)
	if err == io.EOF {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// file writes a file, or its end.
func (w *writer) file(root *os.Root, dir, at string) error {
	name := path.Join(dir, at)
	if w.seen[name] {
		return nil
	}
	w.seen[name] = true
	if w.files >= filesMax {
		w.note("%s: the archive has %d files", name, filesMax)
		return nil
	}
	file, err := root.OpenFile(filepath.FromSlash(at), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		w.note("%s: %v", name, err)
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		w.note("%s: not a regular file", name)
		return nil
	}
	size := info.Size()
	if size > w.left {
		w.note("%s: its first %d bytes", name, size-w.left)
		size = w.left
	}
	if size == 0 && info.Size() > 0 {
		return nil
	}
	w.files++
	into, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: info.ModTime()})
	if err != nil {
		return err
	}
	return w.copy(into, file, info.Size()-size, size)
}
