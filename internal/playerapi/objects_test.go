package playerapi

import (
	"net/http"
	"strings"
	"testing"
)

// One player's text goes to others in text frames. A browser closes the stream if a frame is not UTF-8.
func TestObjectsAreUTF8(t *testing.T) {
	x := newLobby(t, nil)
	ann := x.login("ann")
	x.wants(http.StatusOK, "")(x.call(ann, "Party.CreateParty", `{"attributes":{"mode":"café"}}`))
	for name, body := range map[string]string{
		"Party.SetPartyPreferences":  "{\"attributes\":{\"mode\":\"\xff\"}}",
		"Party.SetPlayerPreferences": "{\"attributes\":{\"a\xc3\":1}}",
	} {
		o := x.wants(http.StatusBadRequest, "INVALID_ARGUMENT")(x.call(ann, name, body))
		if message, _ := o["message"].(string); !strings.Contains(message, "UTF-8") {
			t.Errorf("%s: %q does not say what is wrong", name, message)
		}
	}
}
