package policy

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Place returns the position of a mistake in a document: line and column, from 1, in characters. For a missing member, it is the position of the
// object that lacks it.
func (m *Mistake) Place(document string) (line, column int) {
	offset := m.byte
	if m.At != "" {
		offset = int64(offsetOf(document, m.At))
	}
	before := document[:min(int(offset), len(document))]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// offsetOf finds the value with a path, or the innermost existing value that encloses it.
func offsetOf(document, path string) (best int) {
	d := jsontext.NewDecoder(strings.NewReader(document))
	longest := -1
	_, err := readNodeSeen(d, "", "", func(at string, offset int) {
		inside := at == "" || path == at || strings.HasPrefix(path, at) && strings.ContainsRune(".[", rune(path[len(at)]))
		if inside && len(at) > longest {
			longest, best = len(at), offset
		}
	})
	if _, own := errors.AsType[*Mistake](err); err != nil && !own {
		return 0
	}
	for best < len(document) && strings.IndexByte(" \t\r\n:,", document[best]) >= 0 { // the decoder's offset is at the end of the previous token
		best++
	}
	return best
}
