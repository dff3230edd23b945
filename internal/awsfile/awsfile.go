// Package awsfile edits the files in which AWS clients keep their profiles, and keeps all it was not asked to change:
// comments, order, unknown keys and the way lines end. People's credentials to other things stand in there.
package awsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/atomicfile"
)

// File is a config or credentials file, as lines.
type File struct {
	path  string // where it really lies, when the name is a symbolic link
	mode  fs.FileMode
	lines []string // without \n at their end
	cr    string   // at the end of new lines, before \n: \r or nothing
}

// Open reads a file. One that does not exist is empty, and is made by Save.
func Open(name string) (*File, error) {
	f := &File{path: name, mode: 0o600}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		f.path = real
	}
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read AWS profiles: %w", err)
	}
	if info, err := os.Stat(f.path); err == nil {
		f.mode = info.Mode().Perm()
	}
	text := string(content)
	if strings.Contains(text, "\r\n") {
		f.cr = "\r"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += f.cr
	}
	if text != "" {
		f.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	return f, nil
}

// Has reports whether there is a section of this name.
func (f *File) Has(section string) bool {
	start, _ := f.find(section)
	return start >= 0
}

// Get returns a value, or "" when there is none.
func (f *File) Get(section, key string) string {
	start, end := f.find(section)
	if start < 0 {
		return ""
	}
	if i := f.findKey(start, end, key); i >= 0 {
		_, value, _ := strings.Cut(f.lines[i], "=")
		return strings.TrimSpace(value)
	}
	return ""
}

// Set replaces a value where it stands, or adds it at the end of its section, or the section at the end of the file.
func (f *File) Set(section, key, value string) {
	line := key + " = " + value + f.cr
	start, end := f.find(section)
	if start < 0 {
		if len(f.lines) > 0 && strings.TrimSpace(f.lines[len(f.lines)-1]) != "" {
			f.lines = append(f.lines, f.cr)
		}
		f.lines = append(f.lines, "["+section+"]"+f.cr, line)
		return
	}
	if i := f.findKey(start, end, key); i >= 0 {
		f.lines[i] = line
		return
	}
	for strings.TrimSpace(f.lines[end-1]) == "" { // empty lines go on parting the sections
		end--
	}
	f.lines = slices.Insert(f.lines, end, line)
}

// SetBelow replaces all values below a key, which stand in indented lines behind it, by one.
func (f *File) SetBelow(section, key, name, value string) {
	f.Set(section, key, "")
	start, end := f.find(section)
	at := f.findKey(start, end, key)
	f.lines[at] = key + " =" + f.cr
	behind := at + 1
	for behind < end && strings.HasPrefix(strings.ReplaceAll(f.lines[behind], "\t", " "), " ") && strings.TrimSpace(f.lines[behind]) != "" {
		behind++
	}
	f.lines = slices.Replace(f.lines, at+1, behind, "  "+name+" = "+value+f.cr)
}

// Remove takes a value out, if it is there.
func (f *File) Remove(section, key string) {
	if start, end := f.find(section); start >= 0 {
		if i := f.findKey(start, end, key); i >= 0 {
			f.lines = slices.Delete(f.lines, i, i+1)
		}
	}
}

// Save writes the file as a whole: after a crash the old or the new one is there.
func (f *File) Save() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("write AWS profiles: %w", err)
	}
	return atomicfile.Write(f.path, []byte(strings.Join(f.lines, "\n")+"\n"), f.mode)
}

// find returns the lines of a section, from its head to behind its last line; start is negative without one.
func (f *File) find(section string) (start, end int) {
	start = -1
	for i, line := range f.lines {
		name, isHead := sectionName(line)
		switch {
		case isHead && start >= 0:
			return start, i
		case isHead && name == section:
			start = i
		}
	}
	return start, len(f.lines)
}

// sectionName reads a head such as [default] or [profile dev]; clients allow several spaces and quotes in it.
func sectionName(line string) (name string, ok bool) {
	if !strings.HasPrefix(line, "[") {
		return "", false
	}
	head, _, ok := strings.Cut(line[1:], "]")
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(head))
	return strings.Join(words, " "), ok
}

// findKey looks at lines that are not indented only: indented ones belong to the key above them.
func (f *File) findKey(start, end int, key string) int {
	for i := start + 1; i < end; i++ {
		name, _, ok := strings.Cut(f.lines[i], "=")
		if ok && strings.TrimRight(name, " \t") == key {
			return i
		}
	}
	return -1
}
