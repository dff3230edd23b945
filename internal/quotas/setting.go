package quotas

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain/quota"
)

// entriesMax bounds a setting.
const entriesMax = 1000

// Parse reads quotas: words of the form KIND=N, for every holder, and HOLDER/KIND=N for one. A holder is the id of an access key, or of a person or machine as the
// audit log shows it without the name of a session, or "players".
func Parse(setting string) (*quota.Table, error) {
	t := &quota.Table{Of: map[quota.Holder]quota.Numbers{}}
	words := strings.Fields(setting)
	if len(words) > entriesMax {
		return nil, fmt.Errorf("quotas: %d of them; want at most %d", len(words), entriesMax)
	}
	seen := map[string]bool{}
	for _, word := range words {
		i := strings.LastIndexByte(word, '=')
		if i < 0 {
			return nil, fmt.Errorf("quotas: %.80q: want KIND=N or HOLDER/KIND=N, such as tickets=50000", word)
		}
		what, number := word[:i], word[i+1:]
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("quotas: %.80q: want a number of 1 or more after the =", word)
		}
		if seen[what] {
			return nil, fmt.Errorf("quotas: %.80q is given twice", what)
		}
		seen[what] = true
		holder, kind := "", what
		if i := strings.LastIndexByte(what, '/'); i >= 0 {
			holder, kind = what[:i], what[i+1:]
			if holder == "" {
				return nil, fmt.Errorf("quotas: %.80q: want the id of an access key before the /", word)
			}
		}
		k, err := quota.KindNamed(kind)
		if err != nil {
			return nil, fmt.Errorf("quotas: %.80q: %w", word, err)
		}
		if holder == "" {
			t.Each[k] = n
			continue
		}
		h := HolderNamed(holder)
		own := t.Of[h]
		own[k] = n
		t.Of[h] = own
	}
	return t, nil
}
