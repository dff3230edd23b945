package buildfiles

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"strings"
)

// directoryMax bounds what is read to list a zip, in bytes. An entry of this list takes at least 46 bytes, and ten times as much memory.
const directoryMax = 24 << 20

// Unzip reads a zip and gives the parts of its files to put. sizeMax is the limit of the sum of all files, in bytes, which are counted as they
// are unpacked: the sizes that the zip claims are not trusted. An error that is the fault of the zip is a *Rejected; others come from r or put.
func Unzip(r io.ReaderAt, size, sizeMax int64, put func(Digest, []byte) error) (*Manifest, error) {
	source := &listed{ReaderAt: r, left: directoryMax}
	z, err := zip.NewReader(source, size)
	switch {
	case source.err != nil:
		return nil, source.err
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, reject("the upload is not a zip file, or is damaged: %v", err)
	case len(z.File) > 2*FilesMax: // directories have entries, too
		return nil, reject("%d entries in the zip; want at most %d files", len(z.File), FilesMax)
	}
	source.listed = true
	m, names := &Manifest{}, newNames()
	for _, entry := range z.File {
		switch mode := entry.Mode(); {
		case strings.HasSuffix(entry.Name, "/"):
			if err := CheckPath(strings.TrimSuffix(entry.Name, "/")); err != nil {
				return nil, err
			}
			continue
		case !mode.IsRegular():
			return nil, reject("file %.200q is a %s; a build has plain files only", entry.Name, kindOf(mode))
		case len(m.Files) == FilesMax:
			return nil, reject("more than %d files in the zip", FilesMax)
		}
		if err := names.add(entry.Name); err != nil {
			return nil, err
		}
		f, err := unpack(entry, source, min(sizeMax, SizeMax), put)
		if err != nil {
			return nil, err
		}
		sizeMax -= f.Size
		m.Files = append(m.Files, f)
	}
	return m, nil
}

// modeKnown reports whether an entry was made on a system whose files have the bits of Unix. Source: APPNOTE.TXT, 4.4.2.2.
func modeKnown(entry *zip.File) bool {
	const unix, macOS = 3, 19
	made := entry.CreatorVersion >> 8
	return made == unix || made == macOS
}

func unpack(entry *zip.File, source *listed, limit int64, put func(Digest, []byte) error) (File, error) {
	content, err := entry.Open()
	if err != nil {
		return File{}, source.blame(entry, err)
	}
	defer content.Close()
	var putFailed error
	f, err := Split(content, limit, func(d Digest, part []byte) error {
		putFailed = put(d, part)
		return putFailed
	})
	var rejected *Rejected
	switch {
	case putFailed != nil:
		return f, putFailed
	case errors.As(err, &rejected):
		return f, reject("file %.200q: the files in the zip exceed the size limit", entry.Name)
	case err != nil:
		return f, source.blame(entry, err)
	}
	// A zip that was made on another system than Unix says nothing of execution, and the host must be able to start something.
	f.Path, f.Executable = entry.Name, entry.Mode()&0o111 != 0 || !modeKnown(entry)
	return f, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode.IsDir():
		return "directory without a final slash in its name"
	default:
		return "device or pipe"
	}
}

// listed bounds what is read before a zip is listed, and remembers why its source failed.
type listed struct {
	io.ReaderAt
	left   int64
	listed bool
	err    error
}

func (l *listed) ReadAt(p []byte, at int64) (int, error) {
	if !l.listed {
		if l.left -= int64(len(p)); l.left < 0 {
			l.err = reject("the list of files of the zip has more than %d bytes", directoryMax)
			return 0, l.err
		}
	}
	n, err := l.ReaderAt.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

// blame returns whose fault an error is: the source's, or that of the zip.
func (l *listed) blame(entry *zip.File, err error) error {
	if l.err != nil {
		return l.err
	}
	return reject("file %.200q of the zip: %v", entry.Name, err)
}
