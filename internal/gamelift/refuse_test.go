package gamelift

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A body that the signature does not cover could be changed on the way.
func TestUnsignedPayloadNeedsTLS(t *testing.T) {
	v := newVerifier()
	for _, over := range []*tls.ConnectionState{nil, {}} {
		r := httptest.NewRequest(http.MethodPost, "http://muster.example:8080/", strings.NewReader("{}"))
		r.Header.Set("X-Amz-Content-Sha256", unsignedPayload)
		r.TLS = over
		signPayload(t, r, unsignedPayload, keysForTest()["AKADMIN"], "gamelift", "mars-1", signedAt)
		_, refused := v.verify(r, []byte("{}"), "gamelift")
		switch {
		case over != nil && refused != nil:
			t.Errorf("over TLS: %v", refused)
		case over == nil && (refused == nil || !strings.Contains(refused.ErrorMessage(), "TLS only")):
			t.Errorf("without TLS: %v", refused)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	for _, c := range []struct {
		codec codec
		media string
		body  string
		want  bool
	}{
		{jsonCodec{}, "application/x-amz-json-1.1", "{}", true},
		{jsonCodec{}, "application/json", "{}", true},
		{jsonCodec{}, "Application/JSON; charset=utf-8", "{}", true},
		{jsonCodec{}, "", "", true},
		{jsonCodec{}, "", "{}", false},
		{jsonCodec{}, "text/plain", "{}", false},
		{jsonCodec{}, "text/plain", "", false},
		{jsonCodec{}, "application/x-www-form-urlencoded", "{}", false},
		{jsonCodec{}, "multipart/form-data; boundary=x", "{}", false},
		{jsonCodec{}, "application/cbor", "{}", false},
		{jsonCodec{}, "text/plain, application/json", "{}", false},
		{cborCodec{}, "application/cbor", "\xa0", true},
		{cborCodec{}, "", "", true},
		{cborCodec{}, "", "\xa0", false},
		{cborCodec{}, "text/plain", "\xa0", false},
		{cborCodec{}, "application/json", "\xa0", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		if c.media != "" {
			r.Header.Set("Content-Type", c.media)
		}
		refused := checkMedia(r, c.codec)
		if (refused == nil) != c.want || refused != nil && statusOf(refused.ErrorCode()) != http.StatusUnsupportedMediaType {
			t.Errorf("%T with %q and %q: %v, want %t", c.codec, c.media, c.body, refused, c.want)
		}
	}
}

// A client that is refused before the operations gets the answer in its own protocol.
func TestRefuse(t *testing.T) {
	h := NewHandler(&Service{}, Config{Keys: keysForTest()})
	for _, c := range []struct{ path, target, media, wantMedia, want string }{
		{"/", "GameLift.ListFleets", "application/x-amz-json-1.1", "application/x-amz-json-1.1", `"__type":"AccessDeniedException"`},
		{rpcPath + "ListFleets", "", "application/cbor", "application/cbor", "AccessDeniedException"},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader("x"))
		r.Header.Set("Content-Type", c.media)
		if c.target != "" {
			r.Header.Set("X-Amz-Target", c.target)
		}
		w := httptest.NewRecorder()
		h.Refuse(w, r, "not this way")
		if w.Code != http.StatusForbidden || w.Header().Get("Content-Type") != c.wantMedia || !strings.Contains(w.Body.String(), c.want) || !strings.Contains(w.Body.String(), "not this way") {
			t.Errorf("%s %s: %d %v %q", c.path, c.media, w.Code, w.Header(), w.Body)
		}
	}
}
