package sigv4

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

var at = time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC)

// The signatures of a game server's ids and of an HTTP request, of which the first was computed outside this program and the second
// is the AWS SDK's.
func TestSignatures(t *testing.T) {
	c := NewCredential("AKID", "us-east-1", "gamelift", at)
	key, date := NewKey(secret, &c), at.Format(TimeForm)
	const ids = "c6fee335fb2f44df01469e60f7b6a5f685cc040b2e60a1051a494010250017cb"
	if got := string(key.Append(nil, date, AppendIDs(nil, "host/task", "fleet-1", "p-1"))); got != ids {
		t.Errorf("ids: %s, want %s", got, ids)
	}

	const payload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing
	r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "muster.example", Path: "/"}, Header: http.Header{}}
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: secret}, r, payload, "gamelift", "us-east-1", at); err != nil {
		t.Fatal(err)
	}
	canonical := "GET\n/\n\nhost:muster.example\nx-amz-date:" + date + "\n\nhost;x-amz-date\n" + payload
	want := Algorithm + " Credential=" + c.String() + ", SignedHeaders=host;x-amz-date, Signature=" + string(key.Append(nil, date, []byte(canonical)))
	if got := r.Header.Get("Authorization"); got != want {
		t.Errorf("got  %s\nwant %s", want, got)
	}
}

func TestKeys(t *testing.T) {
	var keys Keys
	c := NewCredential("AKID", "us-east-1", "gamelift", at)
	right := string(NewKey(secret, &c).Append(nil, "date", []byte("text")))
	for _, x := range []struct {
		name, secret, date, text, signature string
		want                                bool
		kept                                int
	}{
		{"another secret", "other", "date", "text", right, false, 0},
		{"another time", secret, "time", "text", right, false, 0},
		{"another text", secret, "date", "tent", right, false, 0},
		{"no signature", secret, "date", "text", "", false, 0},
		{"the right one", secret, "date", "text", right, true, 1},
		{"with the key that is remembered", secret, "date", "text", right, true, 1},
		{"a new secret under the old id", "other", "date", "text", right, false, 1},
	} {
		if got := keys.Match(x.secret, &c, x.date, []byte(x.text), x.signature); got != x.want || keys.Len() != x.kept {
			t.Errorf("%s: %t with %d keys, want %t with %d", x.name, got, keys.Len(), x.want, x.kept)
		}
	}
	for day := range keysMax + 100 {
		other := NewCredential("AKID", "us-east-1", "gamelift", at.AddDate(0, 0, day))
		if !keys.Match(secret, &other, "date", []byte("text"), string(NewKey(secret, &other).Append(nil, "date", []byte("text")))) {
			t.Fatal(other)
		}
	}
	if keys.Len() > keysMax {
		t.Errorf("%d keys are remembered, want at most %d", keys.Len(), keysMax)
	}
}

func TestParseCredential(t *testing.T) {
	for text, want := range map[string]Credential{
		"AK/20260105/eu-central-1/gamelift/aws4_request": {"AK", "20260105/eu-central-1/gamelift/aws4_request", "20260105", "eu-central-1", "gamelift"},
		"a/b/20260105/r/s/aws4_request":                  {"a/b", "20260105/r/s/aws4_request", "20260105", "r", "s"},
	} {
		if got, ok := ParseCredential(text); !ok || got != want || got.String() != text {
			t.Errorf("%s: %+v %t", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "/", "AK", "aws4_request", "/aws4_request", "AK/20260105/r/s", "AK/20260105/r/s/aws4", "AK/2026015/r/s/aws4_request", "/20260105/r/s/aws4_request",
		"20260105/r/s/aws4_request", "AK/20260105//s/aws4_request", "AK/20260105/r//aws4_request", strings.Repeat("/", 10),
	} {
		if got, ok := ParseCredential(text); ok {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

func TestParseTime(t *testing.T) {
	if got, ok := ParseTime("20261121T101112Z"); !ok || !got.Equal(at) {
		t.Errorf("got %s %t", got, ok)
	}
	for _, text := range []string{"", "2026-11-21T10:11:12Z", "20261121T101112", "20261131T101112Z", "20261121T241112Z", "20261121T106012Z", "2026112xT101112Z"} {
		if got, ok := ParseTime(text); ok {
			t.Errorf("%q was taken for %s", text, got)
		}
	}
}

func TestAppendEscaped(t *testing.T) {
	if got := string(AppendEscaped(nil, "aZ0-_.~/ +%é", "/")); got != "aZ0-_.~/%20%2B%25%C3%A9" {
		t.Errorf("got %s", got)
	}
}

func BenchmarkMatch(b *testing.B) {
	var keys Keys
	c := NewCredential("AKID", "us-east-1", "gamelift", at)
	text := []byte(strings.Repeat("canonical ", 40))
	signature := string(NewKey(secret, &c).Append(nil, "20261121T101112Z", text))
	b.ReportAllocs()
	for b.Loop() {
		keys.Match(secret, &c, "20261121T101112Z", text, signature)
	}
}

// Parameters are signed in the order of their names, in which "a" precedes "a-b" and "a1", and then of their values.
func TestAppendQuery(t *testing.T) {
	for query, want := range map[string]string{
		"":                   "",
		"b=2&a=1&a=0":        "a=0&a=1&b=2",
		"a1=3&a-b=2&a=%2F":   "a=%2F&a-b=2&a1=3",
		"a-b=2&a":            "a=&a-b=2",
		"a=x%3Dy&a=x=y&a-b=": "a=x%3Dy&a=x=y&a-b=",
	} {
		if got := string(AppendQuery([]byte("/\n"), query)); got != "/\n"+want {
			t.Errorf("%q: %q, want %q", query, got, "/\n"+want)
		}
	}
}
