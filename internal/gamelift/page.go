package gamelift

import (
	"context"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain/cell"
)

// Page sizes. A small record has a few hundred bytes; a game session may contain hundreds of kilobytes of data.
const (
	pageDefault     = 100
	pageMax         = 1000
	gamePageMax     = 100
	locationPageMax = 200
	queuePageMax    = 50

	// gamePageBytes ends a page of game sessions early, so that no answer takes tens of megabytes.
	gamePageBytes = 1 << 20
)

func pageSize(limit *int32, most int) int {
	if limit == nil {
		return min(pageDefault, most)
	}
	return min(int(*limit), most)
}

// place is where a page begins in creation order: after the record with this creation time and id.
type place struct {
	created int64
	id      string
}

func (p place) String() string { return strconv.FormatInt(p.created, 10) + "/" + p.id }

// pagePlace reads the place from a token; without a token it is the beginning.
func pagePlace(operation string, input any, token *string) (place, error) {
	cursor, err := pageCursor(operation, input, token)
	if err != nil || cursor == "" {
		return place{}, err
	}
	created, id, _ := strings.Cut(cursor, "/")
	n, err := strconv.ParseInt(created, 10, 64)
	if err != nil {
		return place{}, invalid("NextToken is from another version of Muster") // the token was intact but has another form
	}
	return place{n, id}, nil
}

// pageOf returns a page of the records of list, in creation order, and the token of the next page. list returns at most limit records
// after a place, and placeOf returns the place of a record.
func pageOf[T any](ctx context.Context, s *Service, operation string, in any, limit *int32, token *string,
	list func(v *cell.View, after place, limit int) []T, placeOf func(*T) place) (page []T, next *string, err error) {
	after, err := pagePlace(operation, in, token)
	if err != nil {
		return nil, nil, err
	}
	size := pageSize(limit, pageMax)
	page, err = read(ctx, s, func(v *cell.View) ([]T, error) { return list(v, after, size+1), nil })
	page, next = cutPage(operation, in, page, size, func(x *T) string { return placeOf(x).String() })
	return page, next, err
}

// cutPage cuts records, of which one more than a page was read, to a page, and returns the token of the next one. cursorOf returns the
// cursor of a page that ends with a record.
func cutPage[T any](operation string, in any, read []T, size int, cursorOf func(*T) string) (page []T, next *string) {
	if len(read) <= size {
		return read, nil
	}
	return read[:size], pageToken(operation, in, cursorOf(&read[size-1]))
}

// wires converts records to the API's types. The result is never nil, because scripts iterate over it.
func wires[T, W any](records []T, toWire func(*T) W) []W {
	all := make([]W, len(records))
	for i := range records {
		all[i] = toWire(&records[i])
	}
	return all
}
