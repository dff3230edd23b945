package gamelift

import (
	"strconv"
	"strings"
)

// Page sizes. A cheap record is a few hundred bytes; a game session may hold hundreds of kilobytes of data.
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

// place is where a page begins in creation order: after the record that was created then with that id.
type place struct {
	created int64
	id      string
}

func (p place) String() string { return strconv.FormatInt(p.created, 10) + "/" + p.id }

// pagePlace reads the place from a token; no token is the beginning.
func pagePlace(operation string, input any, token *string) (place, error) {
	cursor, err := pageCursor(operation, input, token)
	if err != nil || cursor == "" {
		return place{}, err
	}
	created, id, _ := strings.Cut(cursor, "/")
	n, err := strconv.ParseInt(created, 10, 64)
	if err != nil {
		return place{}, invalid("NextToken is not one of this version of Muster") // it was intact, but not one of ours
	}
	return place{n, id}, nil
}
