package playerrates

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

func find(all []Kind, name string) rate.Limit {
	for _, k := range all {
		if k.Name == name {
			return k.Rate
		}
	}
	return rate.Every(-1, -1)
}

func TestParse(t *testing.T) {
	all, err := Parse(" party=4/s:20  enter=12/m login=90/h:1\tdetails=off ")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]rate.Limit{
		"party": rate.Every(time.Second/4, 20), "enter": rate.Every(5*time.Second, 3), "login": rate.Every(40*time.Second, 1), "details": {}, "code": rate.Every(6*time.Second, 5),
	} {
		if got := find(all, name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, entry := range []string{"frames=40/s:200", "frames=2400/m", "frames=off"} { // no more than what is read
		if _, err := Parse(entry); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
	if got := find(Defaults(), "party"); got != (rate.Every(time.Second/2, 10)) {
		t.Errorf("what one operator said has changed the defaults: %+v", got)
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	for entry, want := range map[string]string{
		"partys=1/s": "a KIND of other, login", "party": "want off, or 1 to 100000", "party=": "want off", "party=0/s": "want off", "party=-1/s": "want off",
		"party=1/d": "s, m or h", "party=1": "s, m or h", "party=1/s:": "after the colon", "party=1/s:0": "after the colon",
		"party=1/s:1e9": "after the colon", "party=1000000/s": "100000", "party=1/s party=2/s": "twice", "=1/s": "a KIND of", "login-address=1/s": "a KIND of",
		"frames=41/s": "at most 40/s:200", "frames=20/s:201": "at most 40/s:200", "frames=100000/m": "at most 40/s:200",
	} {
		if _, err := Parse(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", entry, err, want)
		}
	}
	if _, err := Parse("party=x enter=y code=1/s"); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two wrong entries: got %v, want both", err)
	}
}
