package builddoor

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/waittest"
)

// place is a door with an engine and a store, with and without TLS.
type place struct {
	*testing.T
	dir    string
	engine *engine.Engine
	door   *Door
	tls    *httptest.Server
	plain  *httptest.Server
	stop   func()
	now    time.Time
}

const build = "build-1"

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, dir: t.TempDir(), now: time.Now()}
	p.engine = openEngine(t)
	p.open()
	p.create(build)
	return p
}

func (p *place) open() {
	p.Helper()
	store, err := objects.Open(objects.Options{Dir: p.dir, Quota: 256 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.Fatal(err)
	}
	secret, err := identity.ParseCellSecret(base64.RawURLEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		p.Fatal(err)
	}
	p.door = New(Config{
		Engine: p.engine, Secret: secret, Objects: store, Private: func(r *http.Request) bool { return r.TLS != nil }, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return p.now },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.door.Run(ctx) })
	p.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	p.tls, p.plain = httptest.NewTLSServer(p.door), httptest.NewServer(p.door)
	p.Cleanup(func() { p.tls.Close(); p.plain.Close(); p.stop() })
}

func (p *place) create(id string) {
	p.Helper()
	if err := p.engine.Do(p.Context(), &hosting.CreateBuild{Build: fleet.Build{ID: id, OperatingSystem: "AMAZON_LINUX_2023"}}); err != nil {
		p.Fatal(err)
	}
}

func (p *place) status(id string) (b fleet.Build) {
	p.Helper()
	if err := p.engine.Read(p.Context(), func(v *cell.View) error { b, _ = v.Build(id); return nil }); err != nil {
		p.Fatal(err)
	}
	return b
}

// settled waits until the upload of a build was checked.
func (p *place) settled(id string) fleet.Build {
	p.Helper()
	var b fleet.Build
	waittest.Until(p, "the upload is checked", func() bool { b = p.status(id); return !b.Uploadable() })
	return b
}

func (p *place) s3(server *httptest.Server, id string) *s3.Client {
	key := p.door.Key(id)
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key.ID, key.Secret, key.Token),
	})
}

func noise(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(content) // cannot fail
	return content
}

// zipped returns a zip with a server and a file of payload bytes.
func zipped(t *testing.T, payload int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string][]byte{"bin/server": []byte("#!/bin/sh\n"), "levels.pak": noise(payload)} {
		h := &zip.FileHeader{Name: name, Method: zip.Store}
		h.SetMode(0o755)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The official SDK uploads with and without TLS: it signs the content, or sends a checksum after it.
func TestSDKUploads(t *testing.T) {
	p := newPlace(t)
	content := zipped(t, 100_000)
	for i, c := range []struct {
		name   string
		server *httptest.Server
		body   io.Reader
	}{{"signed", p.plain, bytes.NewReader(content)}, {"unsigned with a trailer", p.tls, bytes.NewReader(content)}} {
		id := fmt.Sprint("build-sdk-", i)
		p.create(id)
		bucket, key := p.door.Place(id)
		client := p.s3(c.server, id)
		for range 2 { // the second time the answer was lost
			out, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: c.body})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if want := fmt.Sprintf(`"%s"`, md5Of(content)); *out.ETag != want {
				t.Errorf("%s: tag %s, want %s", c.name, *out.ETag, want)
			}
			c.body.(*bytes.Reader).Reset(content)
			if b := p.settled(id); b.Manifest == "" || b.Size != 100_010 {
				t.Fatalf("%s: %+v", c.name, b)
			}
		}
		p.recorded(id, "127.0.0.1")
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("other content")})
		refused(t, err, "InvalidObjectState")
		if head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key}); err != nil || *head.ContentLength != int64(len(content)) {
			t.Errorf("%s: %+v %v", c.name, head, err)
		}
	}
}

func TestSDKUploadsInParts(t *testing.T) {
	p := newPlace(t)
	content := zipped(t, 20<<20)
	bucket, key := p.door.Place(build)
	manager := transfermanager.New(p.s3(p.tls, build), func(o *transfermanager.Options) { o.PartSizeBytes, o.MultipartUploadThreshold = 8<<20, 8<<20 })
	if _, err := manager.UploadObject(t.Context(), &transfermanager.UploadObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)}); err != nil {
		t.Fatal(err)
	}
	if b := p.settled(build); b.Manifest == "" || b.Size != 20<<20+10 {
		t.Fatalf("got %+v", b)
	}
	p.quiet()
	if names, err := p.door.Objects.StagedFiles(build); err != nil || fmt.Sprint(names) != "[object.json]" {
		t.Errorf("files %q are left: %v", names, err)
	}
}

// quiet waits until the uploaded files are removed.
func (p *place) quiet() {
	p.Helper()
	waittest.Until(p, "the upload is cleared away", func() bool {
		names, err := p.door.Objects.StagedFiles(build)
		return err == nil && len(names) <= 1
	})
}

func TestPartsOneByOne(t *testing.T) {
	p := newPlace(t)
	ctx := t.Context()
	content := zipped(t, 3<<20)
	client := p.s3(p.plain, build)
	bucket, key := p.door.Place(build)
	created, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	put := func(number int32, content []byte) *string {
		t.Helper()
		out, err := client.UploadPart(ctx, &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: created.UploadId, PartNumber: &number, Body: bytes.NewReader(content)})
		if err != nil {
			t.Fatal(err)
		}
		return out.ETag
	}
	put(2, []byte("a first attempt"))
	second := put(2, content[1<<20:])
	first := put(1, content[:1<<20])
	listed, err := client.ListParts(ctx, &s3.ListPartsInput{Bucket: &bucket, Key: &key, UploadId: created.UploadId})
	if err != nil || len(listed.Parts) != 2 || *listed.Parts[0].ETag != *first || *listed.Parts[1].ETag != *second {
		t.Fatalf("listed %+v: %v", listed, err)
	}
	one, two := int32(1), int32(2)
	complete := func(parts ...s3Part) error {
		_, err := client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: created.UploadId, MultipartUpload: completed(parts...)})
		return err
	}
	refused(t, complete(s3Part{&two, second}, s3Part{&one, first}), "InvalidPartOrder")
	refused(t, complete(s3Part{&one, second}), "InvalidPart")
	for range 2 { // the second time the answer was lost
		if err := complete(s3Part{&one, first}, s3Part{&two, second}); err != nil {
			t.Fatal(err)
		}
		p.settled(build)
		p.quiet()
	}
	if b := p.status(build); b.Manifest == "" {
		t.Errorf("got %+v", b)
	}
	_, err = client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	refused(t, err, "InvalidObjectState")
}

func TestAbortedParts(t *testing.T) {
	p := newPlace(t)
	client := p.s3(p.plain, build)
	bucket, key := p.door.Place(build)
	var last *string
	for range multipartsMax {
		created, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		last = created.UploadId
	}
	_, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	refused(t, err, "OperationAborted")
	number := int32(1)
	if _, err := client.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: last, PartNumber: &number, Body: strings.NewReader("x")}); err != nil {
		t.Fatal(err)
	}
	used, _ := p.door.Objects.Used()
	if _, err := client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: last}); err != nil {
		t.Fatal(err)
	}
	if now, _ := p.door.Objects.Used(); now != used-1 {
		t.Errorf("%d bytes are used, before %d", now, used)
	}
	_, err = client.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: last, PartNumber: &number, Body: strings.NewReader("x")})
	refused(t, err, "NoSuchUpload")
}

func refused(t *testing.T, err error, code string) {
	t.Helper()
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// An upload that is not a valid build leaves only the reason.
func TestFailedUpload(t *testing.T) {
	p := newPlace(t)
	bucket, key := p.door.Place(build)
	if _, err := p.s3(p.plain, build).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("this is no zip")}); err != nil {
		t.Fatal(err)
	}
	if b := p.settled(build); !strings.Contains(b.Failure, "not a zip") || b.Manifest != "" {
		t.Errorf("got %+v", b)
	}
}

// A reason that is too long ends between two characters.
func TestLongReason(t *testing.T) {
	p := newPlace(t)
	bucket, key := p.door.Place(build)
	var content bytes.Buffer
	z := zip.NewWriter(&content)
	if _, err := z.Create(strings.Repeat("€", 200)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.s3(p.plain, build).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content.Bytes())}); err != nil {
		t.Fatal(err)
	}
	if b := p.settled(build); !strings.HasPrefix(b.Failure, `path "€€€`) || !utf8.ValidString(b.Failure) {
		t.Errorf("got %q", b.Failure)
	}
}

// An upload that was complete before a crash becomes a build after it. An incomplete upload has no effect.
func TestAfterACrash(t *testing.T) {
	p := newPlace(t)
	p.stop() // nothing makes a build of the upload
	bucket, key := p.door.Place(build)
	if _, err := p.s3(p.plain, build).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(zipped(t, 1000))}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "uploads", build, ".new-123"), noise(5000), 0o600); err != nil {
		t.Fatal(err)
	}
	p.open()
	if b := p.settled(build); b.Manifest == "" {
		t.Errorf("got %+v", b)
	}
}

// request sends a request that the test signs itself.
func (p *place) request(server *httptest.Server, method, query, payload string, body io.Reader, change func(*http.Request)) (status int, answer string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, server.URL+UploadPrefix+build+suffix+query, body)
	if err != nil {
		p.Fatal(err)
	}
	key := p.door.Key(build)
	r.Header.Set("X-Amz-Content-Sha256", payload)
	creds := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token}
	if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(p.Context(), creds, r, payload, "s3", "us-east-1", p.now); err != nil {
		p.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	out, err := server.Client().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer out.Body.Close()
	text, _ := io.ReadAll(out.Body)
	return out.StatusCode, string(text)
}

func hexSum(content []byte) string { sum := sha256.Sum256(content); return hex.EncodeToString(sum[:]) }

func TestLyingUploads(t *testing.T) {
	p := newPlace(t)
	content := []byte("some content")
	other := p.door.Key("build-2")
	for name, c := range map[string]struct {
		want    string
		server  *httptest.Server
		payload string
		query   string
		content string
		change  func(*http.Request)
	}{
		"another content than signed":  {want: "XAmzContentSHA256Mismatch", payload: hexSum([]byte("other"))},
		"no digest":                    {want: "InvalidArgument", payload: "abc"},
		"unsigned without TLS":         {want: "AccessDenied", payload: unsignedPayload},
		"a wrong MD5":                  {want: "BadDigest", change: func(r *http.Request) { r.Header.Set("Content-Md5", "AAAA") }},
		"a wrong checksum":             {want: "BadDigest", change: func(r *http.Request) { r.Header.Set("X-Amz-Checksum-Crc32c", "AAAA") }},
		"a trailer that does not come": {want: "BadDigest", change: func(r *http.Request) { r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc64nvme") }},
		"another path":                 {want: "SignatureDoesNotMatch", change: func(r *http.Request) { r.URL.Path = UploadPrefix + "build-2.zip" }},
		"another query":                {want: "SignatureDoesNotMatch", change: func(r *http.Request) { r.URL.RawQuery = "uploads=" }},
		"another method":               {want: "SignatureDoesNotMatch", change: func(r *http.Request) { r.Method = http.MethodPost }},
		"no token":                     {want: "InvalidAccessKeyId", change: func(r *http.Request) { r.Header.Del("X-Amz-Security-Token") }},
		"the token of another build":   {want: "InvalidAccessKeyId", change: func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", other.Token) }},
		"no signature":                 {want: "AccessDenied", change: func(r *http.Request) { r.Header.Del("Authorization") }},
		"a signature of last week": {want: "AccessDenied", change: func(r *http.Request) {
			r.Header.Set("X-Amz-Date", p.now.Add(-7*24*time.Hour).UTC().Format("20060102T150405Z"))
		}},
		"a copy":                             {want: "NotImplemented", change: func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/a/b") }},
		"a read":                             {want: "NotImplemented", query: "?acl="},
		"streamed without its length":        {want: "MissingContentLength", server: p.tls, payload: unsignedTrailers},
		"streamed without frames":            {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, change: decoded(12)},
		"a chunk that is longer than it is":  {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, content: "ff\r\nabc\r\n0\r\n\r\n", change: decoded(3)},
		"a chunk that is shorter than it is": {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, content: "1\r\nabc\r\n0\r\n\r\n", change: decoded(3)},
		"more than the announced length":     {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, content: "3\r\nabc\r\n0\r\n\r\n", change: decoded(2)},
		"less than the announced length":     {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, content: "3\r\nabc\r\n0\r\n\r\n", change: decoded(4)},
		"a negative chunk":                   {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, content: "-3\r\nabc\r\n0\r\n\r\n", change: decoded(3)},
		"a chunk without its signature":      {want: "IncompleteBody", payload: signedChunks, content: "3\r\nabc\r\n0\r\n\r\n", change: decoded(3)},
		"a chunk with a wrong signature": {want: "SignatureDoesNotMatch", payload: signedChunks, content: "3;chunk-signature=" + strings.Repeat("0", 64) + "\r\nabc\r\n0\r\n\r\n",
			change: decoded(3)},
		"too many trailers": {want: "IncompleteBody", server: p.tls, payload: unsignedTrailers, content: "3\r\nabc\r\n0\r\n" + strings.Repeat("a:b\r\n", 20) + "\r\n", change: decoded(3)},
	} {
		if c.server == nil {
			c.server = p.plain
		}
		if c.content == "" {
			c.content = string(content)
		}
		if c.payload == "" {
			c.payload = hexSum([]byte(c.content))
		}
		if status, answer := p.request(c.server, http.MethodPut, c.query, c.payload, strings.NewReader(c.content), c.change); !strings.Contains(answer, "<Code>"+c.want+"</Code>") {
			t.Errorf("%s: %d %s, want %s", name, status, answer, c.want)
		}
	}
	if names, err := p.door.Objects.StagedFiles(build); err != nil || len(names) != 0 {
		t.Errorf("files %q are left: %v", names, err)
	}
	if used, _ := p.door.Objects.Used(); used != 0 {
		t.Errorf("%d bytes count", used)
	}
}

func decoded(length int) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(length)) }
}

// The signatures of chunks are made here as the documentation describes them.
func TestSignedChunks(t *testing.T) {
	p := newPlace(t)
	content := zipped(t, 70_000)
	for _, trailer := range []bool{false, true} {
		id := fmt.Sprint("build-", 10+len(fmt.Sprint(trailer)))
		p.create(id)
		payload := signedChunks
		if trailer {
			payload += trailerSuffix
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, p.plain.URL+UploadPrefix+id+suffix, nil)
		key := p.door.Key(id)
		r.Header.Set("X-Amz-Content-Sha256", payload)
		r.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(len(content)))
		if trailer {
			r.Header.Set("X-Amz-Trailer", "x-amz-checksum-sha256")
		}
		creds := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token}
		if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(t.Context(), creds, r, payload, "s3", "us-east-1", p.now); err != nil {
			t.Fatal(err)
		}
		_, seed, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
		c := chunkSigner{secret: key.Secret, at: p.now.UTC(), last: seed}
		var body bytes.Buffer
		for rest := content; ; {
			n := min(len(rest), 64<<10)
			fmt.Fprintf(&body, "%x;chunk-signature=%s\r\n", n, c.sign("PAYLOAD", emptySum+"\n"+hexSum(rest[:n])))
			if n == 0 {
				break
			}
			body.Write(rest[:n])
			body.WriteString("\r\n")
			rest = rest[n:]
		}
		if trailer {
			sum := sha256.Sum256(content)
			line := "x-amz-checksum-sha256:" + base64.StdEncoding.EncodeToString(sum[:])
			body.WriteString(line + "\r\nx-amz-trailer-signature:" + c.sign("TRAILER", hexSum([]byte(line+"\n"))) + "\r\n")
		}
		body.WriteString("\r\n")
		r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
		out, err := p.plain.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(out.Body)
		out.Body.Close()
		if out.StatusCode != http.StatusOK || p.settled(id).Manifest == "" {
			t.Errorf("trailer %v: %s %s", trailer, out.Status, text)
		}
	}
}

// A presigned URL works with a plain PUT until it expires.
func TestPresignedURL(t *testing.T) {
	p := newPlace(t)
	bucket, key := p.door.Place(build)
	signed, err := s3.NewPresignClient(p.s3(p.tls, build)).PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key}, s3.WithPresignExpires(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	put := func() (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, signed.URL, bytes.NewReader(zipped(t, 100)))
		r.Header.Set("Expect", "100-continue")
		out, err := p.tls.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		text, _ := io.ReadAll(out.Body)
		return out.StatusCode, string(text)
	}
	p.now = p.now.Add(2 * time.Minute)
	if status, text := put(); status != http.StatusForbidden || !strings.Contains(text, "expired") {
		t.Errorf("%d %s", status, text)
	}
	p.now = p.now.Add(-2 * time.Minute)
	if status, text := put(); status != http.StatusOK || p.settled(build).Manifest == "" {
		t.Errorf("%d %s", status, text)
	}
}

func TestUploadKeysExpire(t *testing.T) {
	p := newPlace(t)
	key := p.door.Key(build)
	client := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &p.plain.URL, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider(key.ID, key.Secret, key.Token)})
	bucket, object := p.door.Place(build)
	other := strings.Replace(object, "1", "2", 1)
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &other, Body: strings.NewReader("x")})
	refused(t, err, "AccessDenied")
	p.door.Now = func() time.Time { return key.Expires }
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, p.plain.URL+UploadPrefix+build+suffix, strings.NewReader("x"))
	creds := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token}
	r.Header.Set("X-Amz-Content-Sha256", hexSum([]byte("x")))
	if err := v4.NewSigner().SignHTTP(t.Context(), creds, r, hexSum([]byte("x")), "s3", "us-east-1", key.Expires); err != nil {
		t.Fatal(err)
	}
	out, err := p.plain.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if text, _ := io.ReadAll(out.Body); !strings.Contains(string(text), "ExpiredToken") {
		t.Errorf("%s", text)
	}
}

// A connection that breaks in the middle leaves no files, and the next upload succeeds.
func TestBrokenUpload(t *testing.T) {
	p := newPlace(t)
	content := zipped(t, 1<<20)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, p.plain.URL+UploadPrefix+build+suffix, nil)
	key := p.door.Key(build)
	r.Header.Set("X-Amz-Content-Sha256", hexSum(content))
	r.ContentLength = int64(len(content))
	creds := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token}
	if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(t.Context(), creds, r, hexSum(content), "s3", "us-east-1", p.now); err != nil {
		t.Fatal(err)
	}
	address, _ := url.Parse(p.plain.URL)
	c, err := net.Dial("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.URL.Path, address.Host, len(content))
	for name := range r.Header {
		fmt.Fprintf(c, "%s: %s\r\n", name, r.Header.Get(name))
	}
	_, _ = io.WriteString(c, "\r\n"+string(content[:500_000])) // it fails if the service was faster
	c.Close()
	bucket, object := p.door.Place(build)
	if _, err := p.s3(p.plain, build).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &object, Body: bytes.NewReader(content)}); err != nil {
		t.Fatal(err)
	}
	if p.settled(build).Manifest == "" {
		t.Error("the build is not READY")
	}
}

// Of two simultaneous uploads one becomes the build. The other is refused, unless it has the same content.
func TestTwoUploadsAtOnce(t *testing.T) {
	p := newPlace(t)
	bucket, key := p.door.Place(build)
	client := p.s3(p.plain, build)
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for i := range 4 {
		content := zipped(t, 100_000+i)
		all.Go(func() {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			} else {
				refused(t, err, "InvalidObjectState")
			}
		})
	}
	all.Wait()
	if b := p.settled(build); taken != 1 || b.Manifest == "" {
		t.Errorf("%d uploads were taken, %+v", taken, b)
	}
}

func TestFullStore(t *testing.T) {
	p := newPlace(t)
	p.door.Objects.Quota = 1 << 20
	bucket, key := p.door.Place(build)
	// With 2 MiB, the SDK would ask before it sends the content, and send it unasked if a busy service needs more than a second to refuse it. The service does not
	// read that content, so the SDK might see a reset instead of the refusal.
	_, err := p.s3(p.plain, build).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(zipped(t, 3<<19))})
	refused(t, err, "EntityTooLarge")
	if used, _ := p.door.Objects.Used(); used != 0 {
		t.Errorf("%d bytes count", used)
	}
}

// Hosts get a build's manifest and parts from any byte on, with a valid ticket for that build.
func TestFetch(t *testing.T) {
	p := newPlace(t)
	bucket, key := p.door.Place(build)
	if _, err := p.s3(p.plain, build).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(zipped(t, 1000))}); err != nil {
		t.Fatal(err)
	}
	digest := p.settled(build).Manifest
	path := p.door.FetchPath(digest, time.Hour)
	get := func(path, from string) (int, []byte) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.plain.URL+path, nil)
		if from != "" {
			r.Header.Set("Range", "bytes="+from+"-")
		}
		out, err := p.plain.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		text, _ := io.ReadAll(out.Body)
		return out.StatusCode, text
	}
	status, text := get(path, "")
	m, err := buildfiles.ParseManifest(text)
	if status != http.StatusOK || err != nil || buildfiles.DigestOf(text).String() != digest || len(m.Files) != 2 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	part := m.Files[1].Parts[0]
	at := strings.Replace(path, "?", "/parts/"+part.Digest.String()+"?", 1)
	if status, text := get(at, ""); status != http.StatusOK || buildfiles.DigestOf(text) != part.Digest {
		t.Errorf("%d", status)
	}
	if status, text := get(at, "990"); status != http.StatusPartialContent || len(text) != 10 {
		t.Errorf("%d, %d bytes", status, len(text))
	}
	for name, path := range map[string]string{
		"no ticket": FetchPrefix + digest, "another build": strings.Replace(path, digest, part.Digest.String(), 1), "an expired ticket": p.door.FetchPath(digest, -time.Second),
		"a longer ticket": strings.Replace(path, "ticket=1", "ticket=2", 1),
	} {
		if status, _ := get(path, ""); status != http.StatusForbidden {
			t.Errorf("%s: %d", name, status)
		}
	}
	for _, digest := range []string{strings.Repeat("0", 64), "..%2f..%2fcell.secret", "x"} {
		if status, _ := get(strings.Replace(path, "?", "/parts/"+digest+"?", 1), ""); status != http.StatusNotFound && status != http.StatusBadRequest {
			t.Errorf("%s: %d", digest, status)
		}
	}
}

// A request of a host waits for its turn, and is refused after a while so that the host asks again.
func TestFetchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := objects.Open(objects.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		d := New(Config{Secret: identity.NewCellSecret(), Objects: store})
		path := d.FetchPath(strings.Repeat("0", 64), time.Hour)
		begin := func() chan *httptest.ResponseRecorder {
			answered := make(chan *httptest.ResponseRecorder, 1)
			go func() {
				w := httptest.NewRecorder()
				d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				answered <- w
			}()
			synctest.Wait()
			return answered
		}
		for range fetchesMax {
			d.fetches <- struct{}{}
		}
		first, second := begin(), begin()
		if len(first) != 0 || len(second) != 0 {
			t.Fatal("a request did not wait")
		}
		<-d.fetches
		if w := <-first; w.Code != http.StatusNotFound { // nothing has this content
			t.Errorf("a request that waited its turn: %d", w.Code)
		}
		if w := <-second; w.Code != http.StatusNotFound {
			t.Errorf("the request after it: %d", w.Code)
		}
		d.fetches <- struct{}{}
		began := time.Now()
		if w := <-begin(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || time.Since(began) != fetchWait {
			t.Errorf("a request without a turn: %d after %s", w.Code, time.Since(began))
		}
	})
}

// A client sends only the missing parts.
func TestPush(t *testing.T) {
	p := newPlace(t)
	content := []byte("#!/bin/sh\n")
	m := &buildfiles.Manifest{}
	f, err := buildfiles.Split(bytes.NewReader(content), 100, func(buildfiles.Digest, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	f.Path = "server"
	m.Files = append(m.Files, f)
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, query string, body []byte) (int, string) {
		return p.request(p.plain, method, query, hexSum(body), bytes.NewReader(body), nil)
	}
	missing := func() int {
		t.Helper()
		status, answer := send(http.MethodPost, "?"+MissingQuery+"=", text)
		var list Missing
		if err := json.Unmarshal([]byte(answer), &list); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		return len(list.Parts)
	}
	if n := missing(); n != 1 {
		t.Errorf("%d parts are missing", n)
	}
	if status, answer := send(http.MethodPost, "?"+CommitQuery+"=", text); status != http.StatusConflict || !strings.Contains(answer, f.Digest.String()) {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := send(http.MethodPut, "?"+PartQuery+"="+f.Digest.String(), []byte("other")); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := send(http.MethodPut, "?"+PartQuery+"=../../x", content); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := send(http.MethodPut, "?"+PartQuery+"="+f.Digest.String(), content); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
	if n := missing(); n != 0 {
		t.Errorf("%d parts are missing", n)
	}
	if status, answer := send(http.MethodPost, "?"+CommitQuery+"=", []byte(`{"files":[{"path":"../x"}]}`)); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, answer)
	}
	for range 2 { // the second time the answer was lost
		if status, answer := send(http.MethodPost, "?"+CommitQuery+"=", text); status != http.StatusOK {
			t.Errorf("%d %s", status, answer)
		}
	}
	if b := p.status(build); b.Manifest != hexSum(text) || b.Size != int64(len(content)) {
		t.Errorf("got %+v", b)
	}
	p.recorded(build, "127.0.0.1")
}

// recorded checks that the audit log has one entry for a build, which names the source of its files.
func (p *place) recorded(id, address string) {
	p.Helper()
	page, err := audit.Read(p.Context(), p.engine, audit.Filter{What: id}, 0, 10)
	if err != nil || len(page.Entries) != 1 {
		p.Fatalf("the entries of %s are %+v, %v; want one", id, page.Entries, err)
	}
	if e := page.Entries[0]; e.What != uploadOperation || e.Door != audit.DoorBuilds || e.Kind != "build" || e.Address != address || !strings.HasPrefix(e.Who, uploadCredentials) || len(e.Changes) == 0 {
		p.Errorf("the entry of %s is %+v", id, e)
	}
}

// The check value of CRC-64/NVME is from the catalogue of parametrised CRC algorithms.
func TestCRC64NVME(t *testing.T) {
	h := checksums["crc64nvme"]()
	_, _ = h.Write([]byte("123456789"))
	if got := hex.EncodeToString(h.Sum(nil)); got != "ae8b14860a799888" {
		t.Errorf("got %s", got)
	}
}
