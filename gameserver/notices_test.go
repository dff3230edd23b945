package gameserver

import "testing"

// A notice of a later service, with fields in another form or without data, does not block the notices after it.
func TestNoticesOfALaterService(t *testing.T) {
	var got []Notice
	l := &listener{yield: func(n Notice, _ error) bool { got = append(got, n); return true }}
	for _, frame := range []string{
		`{"seq":1,"type":"OnLater","data":{"players":7,"player_id":"ann"}}`,
		`{"seq":2,"type":"OnLater"}`,
		`{"seq":3,"type":"OnPlayerLeft","data":{"player_id":"bob"}}`,
	} {
		if err := l.take([]byte(frame)); err != nil {
			t.Errorf("%s: %v", frame, err)
		}
	}
	if len(got) != 3 || got[0].PlayerID != "ann" || string(got[0].Data) != `{"players":7,"player_id":"ann"}` || got[2].PlayerID != "bob" {
		t.Errorf("got %+v", got)
	}
}
