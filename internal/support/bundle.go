// Package support makes support bundles: archives with information for diagnosing a service, without secrets and without players' data.
//
// The running service gathers its half (service.go). The command adds what only it can know: the findings of the doctor, and the sizes of the files in the data
// directory. A bundle contains only what is listed here: the values of settings that are marked as safe (see settings/bundle.go), names and sizes of files in the data
// directory, and numbers about the state.
package support

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Limits of a bundle, before compression.
const (
	PartMax  = 8 << 20  // bytes of one part; a longer one is cut
	TotalMax = 24 << 20 // bytes of all parts; further parts are omitted
	partsMax = 64
)

// Part is one file of a bundle.
type Part struct {
	Name    string `json:"name"`
	About   string `json:"about"` // description for the README
	Content []byte `json:"content"`
	Cut     bool   `json:"cut,omitempty"`
}

// Parts are the files of a bundle, in their order.
type Parts struct {
	All  []Part `json:"parts"`
	size int
}

// Add adds a part, within the limits.
func (p *Parts) Add(name, about string, content []byte) {
	x := Part{Name: name, About: about, Content: content}
	if len(x.Content) > PartMax {
		x.Content, x.Cut = x.Content[:PartMax], true
	}
	if p.size+len(x.Content) > TotalMax || len(p.All) >= partsMax {
		x.Content, x.Cut = nil, true
	}
	p.size += len(x.Content)
	p.All = append(p.All, x)
}

// Fail records that a part could not be made.
func (p *Parts) Fail(name string, err error) {
	p.Add(name+".error.txt", "why there is no "+name, []byte(err.Error()+"\n"))
}

// untilGivenUp is the time between the end of a context and the end of a wait, so that what needs less is never missing.
const untilGivenUp = time.Second

// ErrNoAnswer is the error of a wait that was given up.
var ErrNoAnswer = errors.New("it took too long: a disk does not answer, or the service hangs")

// Await returns the result of get, or ErrNoAnswer soon after the context ends: no context ends a system call to a disk that does not answer. A panic becomes an error, because a
// bundle is wanted most from a service of which a part does not work.
func Await[T any](ctx context.Context, get func() (T, error)) (result T, err error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var x outcome
		defer func() {
			if p := recover(); p != nil {
				x.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			done <- x
		}()
		x.result, x.err = get()
	}()
	select {
	case x := <-done:
		return x.result, x.err
	case <-ctx.Done():
	}
	select {
	case x := <-done:
		return x.result, x.err
	case <-time.After(untilGivenUp):
		return result, ErrNoAnswer
	}
}

// Make adds a part with the content that content returns, or says why there is none. It waits for the content as Await does.
func (p *Parts) Make(ctx context.Context, name, about string, content func() ([]byte, error)) {
	made, err := Await(ctx, content)
	if err != nil {
		p.Fail(name, err)
		return
	}
	p.Add(name, about, made)
}

// Join adds the parts of another half.
func (p *Parts) Join(others []Part) {
	for _, x := range others {
		p.Add(x.Name, x.About, x.Content)
		if last := &p.All[len(p.All)-1]; x.Cut {
			last.Cut = true
		}
	}
}

// Without lists what a bundle does not contain, for the README and for the person who sends it.
const Without = `access keys, tokens, the secret of the installation, private keys and passwords
the values of settings that may contain a secret (they are shown as "set")
the content of the journal, of snapshots and of the archive, and of files of builds and logs of game sessions
the files that settings name (people, web identities, hooks, certificates)
what server processes print`

// readme is the first file of a bundle.
func (p *Parts) readme(made time.Time, by string) []byte {
	b := &strings.Builder{}
	fmt.Fprintf(b, "Support bundle of Muster, made %s by muster %s.\n\nIt contains\n\n", made.UTC().Format(time.RFC3339), by)
	for _, x := range p.All {
		fmt.Fprintf(b, "  %-28s %s", x.Name, x.About)
		if x.Cut {
			b.WriteString(" (truncated: it was too long)")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nIt does not contain\n\n")
	for line := range strings.Lines(Without) {
		b.WriteString("  " + line)
	}
	b.WriteString(`

Log lines, the overview and names of metrics contain names of fleets, queues and access keys (their ids), ids of game sessions and players, and network addresses. Look
through log.txt and overview.json before you send the bundle to a person who may not see these.
`)
	return []byte(b.String())
}

// Write writes the bundle as a gzip-compressed tar archive whose files are in one directory.
func (p *Parts) Write(w io.Writer, made time.Time, by string) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	dir := "muster-support-" + made.UTC().Format("20060102-150405")
	all := slices.Concat([]Part{{Name: "README.txt", Content: p.readme(made, by)}}, p.All)
	for _, x := range all {
		if x.Content == nil && x.Cut {
			continue // the README lists it as omitted
		}
		head := &tar.Header{Name: path.Join(dir, path.Base(cmp.Or(x.Name, "part"))), Mode: 0o600, Size: int64(len(x.Content)), ModTime: made, Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		if _, err := archive.Write(x.Content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}
