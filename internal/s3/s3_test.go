package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"s3://games/muster":                   `{games muster   true}`,
		"s3://games":                          `{games    true}`,
		"s3://games/a/b/?region=eu-central-1": `{games a/b  eu-central-1 true}`,
		"s3://games/x?endpoint=https://minio.example.com:9000/":   `{games x https://minio.example.com:9000  false}`,
		"s3://games/x?endpoint=http://127.0.0.1:9000&style=host":  `{games x http://127.0.0.1:9000  true}`,
		"s3://games/x?endpoint=http://minio.example.com":          "want https",
		"s3://games/x?endpoint=minio.example.com":                 "want https://HOST",
		"s3://games/x?endpoint=https://key:secret@minio.example/": "want https://HOST",
		"s3://games/x?sse=none":                                   `sse "none"`,
		"s3://games/x?sse=AES256&sse-key=1":                       "sse-key is for",
		"s3://games/x?sse=aws:kms&sse-key=1":                      `{games x   true}`,
		"s3://games/../x":                                         "shortest form",
		"s3://games/x?secret=1":                                   `parameter "secret"`,
		"s3://games/x?style=odd":                                  `style "odd"`,
		"s3://games/a%20b":                                        "letters, digits",
		"s3:///x":                                                 "want s3://BUCKET/PREFIX",
		"https://games/x":                                         "want s3://BUCKET/PREFIX",
		"s3://key:secret@games/x":                                 "want s3://BUCKET/PREFIX",
	} {
		p, err := Parse(text)
		got := fmt.Sprintf("{%s %s %s %s %t}", p.Bucket, p.Prefix, p.Endpoint, p.Region, p.HostStyle)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

var keys = credentials.NewStaticCredentialsProvider("AKID", "secret", "")

func impatient(context.Context, int) error { return nil }

// fake returns an S3 server in memory, in front of which a test may put another handler.
func fake(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (answered bool)) *Client {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("games"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
			store.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	c := New(Place{Bucket: "games", Prefix: "a-prefix/muster", Endpoint: server.URL}, keys)
	c.pause = impatient
	return c
}

// A store that does not know ListObjectsV2 answers with the pages of the first version, which have no token for the next page. A list that ends there
// would look complete.
func TestListWithoutAToken(t *testing.T) {
	c := fake(t, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>a</NextMarker><Contents><Key>a-prefix/muster/a</Key><Size>1</Size></Contents></ListBucketResult>`)
		return true
	})
	n := 0
	err := c.List(t.Context(), "", func(_ time.Time, page []Info) error { n += len(page); return nil })
	if err == nil || !strings.Contains(err.Error(), "ListObjectsV2") {
		t.Errorf("%d objects, %v; want an error", n, err)
	}
}

// This tests all operations against a real implementation of the protocol.
func TestOperations(t *testing.T) {
	c := fake(t, nil)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Check(ctx))
	if _, err := c.Get(ctx, "parts/a", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an object that does not exist: %v", err)
	}
	if _, err := c.Head(ctx, "parts/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the head of one: %v", err)
	}
	must(c.Delete(ctx, "parts/a"))
	content := []byte("some content")
	must(c.PutBytes(ctx, "parts/a", content))
	must(c.PutBytes(ctx, "parts/empty", nil))
	must(c.PutBytes(ctx, "other", content))
	got, err := c.Get(ctx, "parts/a", 100)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := c.Get(ctx, "parts/a", 5); err == nil || !strings.Contains(err.Error(), "more than 5 bytes") {
		t.Errorf("an object that is too long: %v", err)
	}
	must(c.Touch(ctx, "parts/a"))
	info, err := c.Head(ctx, "parts/a")
	if err != nil || info.Size != int64(len(content)) || info.Modified.IsZero() {
		t.Errorf("got %+v, %v", info, err)
	}
	answer, err := c.Open(ctx, "parts/a", "bytes=5-")
	must(err)
	rest, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || string(rest) != "content" || answer.StatusCode != http.StatusPartialContent {
		t.Errorf("got %d %q, %v", answer.StatusCode, rest, err)
	}
	var listed []string
	must(c.List(ctx, "parts/", func(now time.Time, page []Info) error {
		for _, x := range page {
			listed = append(listed, fmt.Sprint(x.Key, " ", x.Size))
		}
		if now.IsZero() {
			t.Error("the list has no time")
		}
		return nil
	}))
	if fmt.Sprint(listed) != "[parts/a 12 parts/empty 0]" {
		t.Errorf("listed %q", listed)
	}
	must(c.Delete(ctx, "other"))
	if _, err := c.Get(ctx, "other", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
	c.place.Bucket, c.base = "nothing", strings.Replace(c.base, "/games", "/nothing", 1)
	if _, err := c.Get(ctx, "x", 100); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("a bucket that does not exist: %v", err)
	}
}

// A list continues over several pages.
func TestListPages(t *testing.T) {
	c := fake(t, func(w http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		if q.Get("list-type") == "2" {
			q.Set("max-keys", "2")
			r.URL.RawQuery = q.Encode()
		}
		return false
	})
	for i := range 5 {
		if err := c.PutBytes(t.Context(), fmt.Sprint("k", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := 0, 0
	if err := c.List(t.Context(), "k", func(_ time.Time, page []Info) error { seen, pages = seen+len(page), pages+1; return nil }); err != nil || seen != 5 || pages != 3 {
		t.Errorf("%d objects on %d pages, %v", seen, pages, err)
	}
}

// A request that may succeed later is retried with its whole content. A request that the store refuses is not, and the error repeats the store's message.
func TestFaults(t *testing.T) {
	var requests atomic.Int32
	answers := func(status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if requests.Add(1) > 2 && status != http.StatusForbidden {
				return false
			}
			_, _ = io.CopyN(io.Discard, r.Body, 1)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			return true
		}
	}
	content := bytes.Repeat([]byte("content "), 1<<16)
	for name, x := range map[string]struct {
		before   func(http.ResponseWriter, *http.Request) bool
		requests int32
		says     string // empty: it succeeds in the end
	}{
		"busy":      {answers(503, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"), 3, ""},
		"broken":    {answers(500, "a proxy is unhappy"), 3, ""},
		"forbidden": {answers(403, "<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>"), 1, "put parts/x in s3://games/a-prefix/muster: the object store answers 403 AccessDenied: Access Denied."},
		"cut off": {func(w http.ResponseWriter, r *http.Request) bool {
			if requests.Add(1) > 2 {
				return false
			}
			panic(http.ErrAbortHandler)
		}, 3, ""},
		"busy for long": {func(w http.ResponseWriter, _ *http.Request) bool {
			requests.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}, attemptsMax, "answers 503"},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			c := fake(t, x.before)
			err := c.Put(t.Context(), "parts/x", bytes.NewReader(content), int64(len(content)), sha256.Sum256(content))
			if n := requests.Load(); n != x.requests {
				t.Errorf("%d requests, want %d", n, x.requests)
			}
			if x.says != "" {
				if err == nil || !strings.Contains(err.Error(), x.says) || !IsFault(err) {
					t.Errorf("got %v, want %s", err, x.says)
				}
				return
			}
			got, getErr := c.Get(t.Context(), "parts/x", 1<<20)
			if err != nil || getErr != nil || !bytes.Equal(got, content) {
				t.Errorf("put: %v; got %d bytes, %v", err, len(got), getErr)
			}
		})
	}
}

// After an early answer HTTP may still read the content of that attempt while the next one runs. That takes no bytes from the next one.
func TestEarlyAnswer(t *testing.T) {
	c := fake(t, nil)
	content := []byte("some content of an object")
	var first io.Reader
	var got []byte
	c.uploads.Transport = transport(func(r *http.Request) (*http.Response, error) {
		if first == nil {
			first = r.Body
			return nil, errors.New("the connection broke")
		}
		if _, err := io.CopyN(io.Discard, first, 4); err != nil {
			return nil, err
		}
		var err error
		got, err = io.ReadAll(r.Body)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
	})
	if err := c.PutBytes(t.Context(), "parts/x", content); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, content) {
		t.Errorf("the second attempt sent %q", got)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An answer that breaks off is not mistaken for the whole object.
func TestBrokenAnswer(t *testing.T) {
	n := 0
	c := fake(t, func(w http.ResponseWriter, r *http.Request) bool {
		if n++; n > 2 {
			return false
		}
		w.Header().Set("Content-Length", "12")
		_, _ = io.WriteString(w, "some")
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Get(t.Context(), "x", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after two answers that broke off: %v", err)
	}
	if n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// A network that is slow, but does not stop, fails no request, even if a proxy accepts an upload at once and forwards it slowly. A store that stops
// fails the request.
func TestSlow(t *testing.T) {
	content := bytes.Repeat([]byte("content "), 1<<19) // 4 MiB, for which 10 kB/s take seven minutes
	slowly := func(to io.Writer, from io.Reader, rate int64) {
		for {
			if _, err := io.CopyN(to, from, rate); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
	for name, x := range map[string]struct {
		store func(w http.ResponseWriter, r *http.Request, end <-chan struct{})
		fails bool
	}{
		"slow": {store: func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
			slowly(io.Discard, r.Body, 10_000)
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			slowly(w, bytes.NewReader(content), 10_000)
		}},
		"behind a proxy": {store: func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
			_, _ = io.Copy(io.Discard, r.Body)
			slowly(io.Discard, bytes.NewReader(content), slowest)
			_, _ = w.Write(content)
		}},
		"silent": {func(_ http.ResponseWriter, r *http.Request, end <-chan struct{}) {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			<-end
		}, true},
		"silent after the upload": {func(_ http.ResponseWriter, r *http.Request, end <-chan struct{}) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-end
		}, true},
		"silent answer": {func(w http.ResponseWriter, r *http.Request, end <-chan struct{}) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:1000])
			_ = http.NewResponseController(w).Flush()
			<-end
		}, true},
	} {
		for _, method := range []string{http.MethodPut, http.MethodGet} {
			if method == http.MethodPut && name == "silent answer" || method == http.MethodGet && name == "behind a proxy" {
				continue
			}
			t.Run(method+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := New(Place{Bucket: "games", Endpoint: "http://127.0.0.1:1"}, keys)
					c.pause = impatient
					l, end := pipes(make(chan net.Conn)), make(chan struct{})
					server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.store(w, r, end) })}
					go func() { _ = server.Serve(l) }()
					defer time.Sleep(time.Second) // until the server's connections have ended
					defer server.Close()
					defer close(end)
					for _, by := range []*http.Client{c.http, c.uploads} {
						by.Transport.(*http.Transport).DialContext = l.dial
						defer by.CloseIdleConnections()
					}
					began := time.Now()
					var err error
					if method == http.MethodPut {
						err = c.PutBytes(t.Context(), "x", content)
					} else {
						var got []byte
						if got, err = c.Get(t.Context(), "x", int64(len(content))); err == nil && !bytes.Equal(got, content) {
							t.Errorf("got %d bytes", len(got))
						}
					}
					took := time.Since(began)
					switch {
					case !x.fails && err != nil:
						t.Errorf("after %s: %v", took, err)
					case x.fails && (err == nil || !IsFault(err)):
						t.Errorf("a store that is silent: %v", err)
					case x.fails && took > attemptsMax*3*time.Minute:
						t.Errorf("the silence was noticed after %s", took)
					}
				})
			})
		}
	}
}

// pipes are connections in memory, which have no buffers.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	p <- b
	return a, nil
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Requests are signed with the credentials, which may have a session token.
func TestSigned(t *testing.T) {
	var authorization, token string
	c := fake(t, func(_ http.ResponseWriter, r *http.Request) bool {
		authorization, token = r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token")
		return false
	})
	c.credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "token"}, nil
	})
	if err := c.PutBytes(t.Context(), "x", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 Credential=AKID/") || !strings.Contains(authorization, "/us-east-1/s3/aws4_request") || token != "token" {
		t.Errorf("signed with %q, token %q", authorization, token)
	}
	c.credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no role") })
	if err := c.PutBytes(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "credentials: no role") {
		t.Errorf("without credentials: %v", err)
	}
}

// Every request that writes an object asks for the encryption of the place: S3 encrypts a copy as the bucket says, and policies of buckets refuse writes that do not ask.
func TestEncryption(t *testing.T) {
	asked := map[string]string{}
	c := fake(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			what := "put"
			if r.Header.Get("X-Amz-Copy-Source") != "" {
				what = "touch"
			}
			asked[what] = r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") + " " + r.Header.Get("Content-Type")
		}
		return false
	})
	c.place.Encryption, c.place.EncryptionKey = "aws:kms", "key-1"
	if err := errors.Join(c.PutBytes(t.Context(), "x", []byte("y")), c.Touch(t.Context(), "x")); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"put", "touch"} {
		if want := "aws:kms key-1 application/octet-stream"; asked[what] != want {
			t.Errorf("%s asks for %q, want %q", what, asked[what], want)
		}
	}
}
