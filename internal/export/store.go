package export

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/atomicfile"
)

const (
	cursorFormat = 1
	cursorName   = "cursor.json"
	partial      = ".partial"
	fileBytes    = 64 << 20 // of lines, after which new files are started
)

// Cursor records what an export has, so that the next run continues there.
type Cursor struct {
	Format       int       `json:"format"`
	Installation uuid.UUID `json:"installation"`
	Kinds        []string  `json:"kinds"`
	Until        time.Time `json:"until"`           // the export has all records that ended before this time
	Bytes        int64     `json:"bytes,omitempty"` // of the file
}

// ReadCursor returns nil if there is no cursor.
func ReadCursor(path string) (*Cursor, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Cursor{}
	if err := json.Unmarshal(text, c); err != nil || c.Format != cursorFormat || c.Until.IsZero() {
		return nil, fmt.Errorf("%s: format %d, want format %d as an export writes it (%w)", path, c.Format, cursorFormat, cmp.Or(err, errors.New("not a cursor")))
	}
	return c, nil
}

func (c *Cursor) write(path string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'), 0o600)
}

// CheckFor returns an error if the cursor cannot continue with these kinds.
func (c *Cursor) CheckFor(kinds []string) error {
	if !slices.Equal(c.Kinds, kinds) {
		return fmt.Errorf("the export has the kinds %s, but this run would have %s: export to another place", strings.Join(c.Kinds, ","), strings.Join(kinds, ","))
	}
	return nil
}

func (c *Cursor) checkHead(h Head) error {
	if c != nil && c.Installation != h.Installation {
		return fmt.Errorf("the export is from installation %s, but the service is installation %s: export to another place", c.Installation, h.Installation)
	}
	return nil
}

// Dir stores an export in a directory. It has a cursor, and for each kind a directory of compressed files, each with the records of a span of time. A
// file gets its name once it is complete. Files beyond the cursor come from a run that was killed; the next run removes them.
type Dir struct {
	Path  string
	Kinds []string

	head  Head
	from  int64 // of the open files
	bytes int64
	files map[string]*lines // by kind
}

// CursorPath returns the path of the cursor.
func (d *Dir) CursorPath() string { return filepath.Join(d.Path, cursorName) }

// Begin implements Store.
func (d *Dir) Begin(h Head) error {
	c, err := ReadCursor(d.CursorPath())
	if err == nil {
		err = c.checkHead(h)
	}
	if err != nil {
		return err
	}
	d.head, d.from, d.files = h, h.From, map[string]*lines{}
	for _, kind := range d.Kinds {
		dir := filepath.Join(d.Path, kind)
		if err := atomicfile.MakeDir(dir, 0o700); err != nil {
			return err
		}
		there, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, x := range there {
			from, _, _ := strings.Cut(strings.TrimPrefix(x.Name(), kind+"-"), "Z")
			if strings.HasSuffix(x.Name(), partial) || c != nil && from+"Z" >= stamp(c.Until.UnixMilli()) && strings.HasPrefix(x.Name(), kind+"-") {
				if err := os.Remove(filepath.Join(dir, x.Name())); err != nil {
					return err
				}
			}
		}
	}
	if c != nil {
		return nil
	}
	return d.move(h.From) // so that the next run recognizes the files of this one even if it is killed before the first of them is complete
}

// move writes a cursor.
func (d *Dir) move(until int64) error {
	c := Cursor{Format: cursorFormat, Installation: d.head.Installation, Kinds: d.Kinds, Until: time.UnixMilli(until).UTC()}
	return c.write(d.CursorPath())
}

// stamp formats a time for file names, so that they sort by time.
func stamp(ms int64) string {
	return strings.Replace(time.UnixMilli(ms).UTC().Format("20060102T150405.000Z"), ".", "", 1)
}

// Line implements Store.
func (d *Dir) Line(kind string, text []byte) error {
	f := d.files[kind]
	if f == nil {
		file, err := os.OpenFile(filepath.Join(d.Path, kind, "new"+partial), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		f = newLines(file, true)
		d.files[kind] = f
	}
	d.bytes += int64(len(text)) + 1
	return f.line(text)
}

// Complete implements Store.
func (d *Dir) Complete(until int64, last bool) error {
	if !last && d.bytes < fileBytes {
		return nil
	}
	for kind, f := range d.files {
		if err := f.close(); err != nil {
			return err
		}
		dir := filepath.Join(d.Path, kind)
		if err := atomicfile.Rename(filepath.Join(dir, "new"+partial), filepath.Join(dir, kind+"-"+stamp(d.from)+"-"+stamp(until)+".jsonl.gz")); err != nil {
			return err
		}
	}
	clear(d.files)
	d.from, d.bytes = until, 0
	return d.move(until)
}

// File stores an export in one file, with a cursor beside it. The file is compressed if its name ends with .gz. Data beyond the cursor comes from a
// run that was killed; the next run truncates it.
type File struct {
	Path  string
	Kinds []string

	head  Head
	file  *os.File
	lines *lines
	bytes int64
}

// CursorPath returns the path of the cursor.
func (f *File) CursorPath() string { return f.Path + ".cursor" }

// Begin implements Store.
func (f *File) Begin(h Head) error {
	c, err := ReadCursor(f.CursorPath())
	if err == nil {
		err = c.checkHead(h)
	}
	if err != nil {
		return err
	}
	flags, length := os.O_RDWR|os.O_CREATE, int64(0)
	if c == nil {
		// Without a cursor, the only file that the export may overwrite is that of a run that ended before it wrote its first cursor.
		if info, err := os.Stat(f.Path + partial); err == nil && info.Mode().IsRegular() {
			if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		} else if _, err := os.Lstat(f.Path); err == nil { // before the mark is made: with it, the next run would overwrite the file
			return fmt.Errorf("%s: %w, and no cursor of an export is beside it; choose another name", f.Path, fs.ErrExist)
		}
		if err := atomicfile.Write(f.Path+partial, nil, 0o600); err != nil {
			return err
		}
		flags |= os.O_EXCL
	} else {
		length = c.Bytes
	}
	if f.file, err = os.OpenFile(f.Path, flags, 0o600); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err == nil && info.Size() < length {
		err = fmt.Errorf("%s has %d bytes, and its cursor says %d: it is not the file of that export", f.Path, info.Size(), length)
	}
	if err == nil {
		err = f.file.Truncate(length)
	}
	if err == nil {
		_, err = f.file.Seek(0, io.SeekEnd)
	}
	f.head = h
	return err
}

// Line implements Store.
func (f *File) Line(_ string, text []byte) error {
	if f.lines == nil {
		f.lines = newLines(f.file, strings.HasSuffix(f.Path, ".gz"))
	}
	f.bytes += int64(len(text)) + 1
	return f.lines.line(text)
}

// Complete implements Store.
func (f *File) Complete(until int64, last bool) error {
	if !last && f.bytes < fileBytes {
		return nil
	}
	if f.lines != nil {
		if err := f.lines.flush(); err != nil {
			return err
		}
	}
	f.lines, f.bytes = nil, 0
	if err := f.file.Sync(); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	c := Cursor{Format: cursorFormat, Installation: f.head.Installation, Kinds: f.Kinds, Until: time.UnixMilli(until).UTC(), Bytes: info.Size()}
	if err := errors.Join(atomicfile.SyncDir(filepath.Dir(f.Path)), c.write(f.CursorPath())); err != nil {
		return err
	}
	if err := atomicfile.Remove(f.Path + partial); err != nil || !last {
		return err
	}
	return f.file.Close()
}

// Pipe writes an export without keeping a cursor.
type Pipe struct {
	To io.Writer

	lines *lines
}

// Begin implements Store.
func (p *Pipe) Begin(Head) error {
	p.lines = &lines{out: bufio.NewWriter(p.To)}
	return nil
}

// Line implements Store.
func (p *Pipe) Line(_ string, text []byte) error { return p.lines.line(text) }

// Complete implements Store.
func (p *Pipe) Complete(int64, bool) error { return p.lines.out.Flush() }

// lines writes lines to a file, optionally compressed.
type lines struct {
	file *os.File
	zip  *gzip.Writer // nil: not compressed
	out  *bufio.Writer
}

func newLines(f *os.File, compressed bool) *lines {
	l := &lines{file: f}
	if compressed {
		l.zip = gzip.NewWriter(f)
		l.out = bufio.NewWriterSize(l.zip, 64<<10)
	} else {
		l.out = bufio.NewWriterSize(f, 64<<10)
	}
	return l
}

func (l *lines) line(text []byte) error {
	_, err := l.out.Write(text)
	if err == nil {
		err = l.out.WriteByte('\n')
	}
	return err
}

// flush ends the compressed stream.
func (l *lines) flush() error {
	err := l.out.Flush()
	if l.zip != nil {
		err = cmp.Or(err, l.zip.Close())
	}
	return err
}

func (l *lines) close() error { return errors.Join(l.flush(), l.file.Sync(), l.file.Close()) }
