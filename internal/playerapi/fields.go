package playerapi

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// parseID reads an identifier from a field of a request.
func parseID(field, prefix, text string) (domain.UUID, error) {
	if rest, ok := strings.CutPrefix(text, prefix); ok {
		if u, ok := domain.ParseUUID(rest); ok {
			return u, nil
		}
	}
	return domain.UUID{}, refusal(flow.InvalidArgument, "%s: %.60q, want %s and a UUID", field, text, prefix)
}

// parseNumber reads the number of an event from a query.
func parseNumber(query url.Values, field string) (n uint64, given bool, problem *Problem) {
	text := query.Get(field)
	if text == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, refusal(flow.InvalidArgument, "%s: %.30q, want the number of an event", field, text)
	}
	return n, true, nil
}

// checkSize refuses an object that is larger than most bytes.
func checkSize(field string, o *Object, most int) error {
	if o != nil && len(*o) > most {
		return refusal(flow.InvalidArgument, "%s: %d bytes, want at most %d", field, len(*o), most)
	}
	return nil
}
