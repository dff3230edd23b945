// Package s3 is a client for the few S3 operations that the service needs from an operator's object store: put, get, head, copy, delete, list. The AWS SDK signs the
// requests and finds the credentials. The SDK's package for S3 would make the binary a tenth larger, mostly with operations that nothing calls.
package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
)

// Bounds.
const (
	attemptsMax = 4
	headWait    = 30 * time.Second // for the header of an answer, once the store has received the whole request
	bodyWait    = 3 * time.Minute  // for the next bytes of an answer
	slowest     = 8 << 10          // bytes per second of an upload
	heldMax     = 4 << 20          // bytes of an upload that the system and a proxy buffer before they reach the store
	errorMax    = 16 << 10         // bytes that are read of an error
	listMax     = 4 << 20          // bytes of a page of a list
)

// Place is a bucket and a prefix in an object store.
type Place struct {
	Bucket, Prefix string
	Endpoint       string // without a slash at the end; empty: AWS
	Region         string // empty: that of the AWS configuration, or us-east-1
	HostStyle      bool   // the bucket is part of the host name, as AWS requires

	Encryption    string // by the store: AES256, aws:kms or aws:kms:dsse; empty: the bucket's default
	EncryptionKey string // the id of the key for aws:kms; empty: the store's own
}

// plain has the characters that a prefix may contain: they look the same in every form of a signed URL.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"

// Parse reads s3://BUCKET/PREFIX, with the parameters endpoint, region, style (path or host), sse and sse-key in the query.
func Parse(text string) (p Place, err error) { return ParseAt(text, "") }

// ParseAt is Parse with a default endpoint instead of AWS.
func ParseAt(text, endpoint string) (p Place, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Port() != "" || u.Fragment != "" {
		return p, fmt.Errorf("%q; want s3://BUCKET/PREFIX", text)
	}
	p = Place{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Endpoint: strings.TrimRight(endpoint, "/")}
	if clean := path.Clean("/" + p.Prefix); clean != "/"+p.Prefix {
		return p, fmt.Errorf("%q: the prefix is not in its shortest form; want %q", text, clean[1:])
	}
	if i := strings.IndexFunc(p.Bucket+p.Prefix, func(r rune) bool { return !strings.ContainsRune(plain, r) }); i >= 0 {
		return p, fmt.Errorf("%q: %q in bucket or prefix; want letters, digits, '-', '_', '.' and '/'", text, (p.Bucket + p.Prefix)[i:i+1])
	}
	style := ""
	for name, values := range u.Query() {
		switch value := values[0]; name {
		case "endpoint":
			p.Endpoint = strings.TrimRight(value, "/")
		case "region":
			p.Region = value
		case "style":
			style = value
		case "sse":
			p.Encryption = value
		case "sse-key":
			p.EncryptionKey = value
		default:
			return p, fmt.Errorf("%q: parameter %q; want endpoint, region, style, sse or sse-key", text, name)
		}
	}
	switch style {
	case "host":
		p.HostStyle = true
	case "path":
	case "":
		p.HostStyle = p.Endpoint == "" // many other stores have only one host name
	default:
		return p, fmt.Errorf("%q: style %q; want path or host", text, style)
	}
	if e := p.Encryption; e != "" && e != "AES256" && e != "aws:kms" && e != "aws:kms:dsse" {
		return p, fmt.Errorf("%q: sse %q; want AES256, aws:kms or aws:kms:dsse", text, e)
	}
	if p.EncryptionKey != "" && !strings.HasPrefix(p.Encryption, "aws:kms") {
		return p, fmt.Errorf("%q: sse-key is for sse=aws:kms", text)
	}
	return p, p.checkEndpoint()
}

func (p *Place) checkEndpoint() error {
	if p.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(p.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("endpoint %q; want https://HOST[:PORT]", p.Endpoint)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("endpoint %q: want https, because others on the network could read the content; plain http is for a store on this machine", p.Endpoint)
	}
	return nil
}

// Client sends requests to one store. Its methods may be called concurrently.
type Client struct {
	place       Place
	base        string // URL of the bucket
	credentials aws.CredentialsProvider
	signer      *v4.Signer
	http        *http.Client
	uploads     *http.Client // without a time limit: only the context ends a request
	pause       func(ctx context.Context, attempt int) error
}

// Open makes a client with the credentials that AWS tools would use: the environment, the profile files, the role of the machine.
func Open(ctx context.Context, p Place) (*Client, error) {
	found, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", p, err)
	}
	if p.Region == "" {
		p.Region = found.Region
	}
	return New(p, found.Credentials), nil
}

// How long credentials may take. A machine's role comes from an address in the machine's own network, which answers within milliseconds or does not exist.
const (
	credentialsWait = 30 * time.Second
	machineWait     = 5 * time.Second
)

// FindCredentials fails soon if there are no credentials. Without it, requests would be retried for minutes, as if the store were down.
func (c *Client) FindCredentials(ctx context.Context) error {
	wait, looked := credentialsWait, ""
	if aws.IsCredentialsProvider(c.credentials, (*ec2rolecreds.Provider)(nil)) { // the last provider, used if no other is configured
		wait = machineWait
		looked = "; the command looked for AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE, the profile (AWS_PROFILE, otherwise default) in the AWS configuration and credentials files, a container's role, and the role of this machine"
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := c.credentials.Retrieve(ctx); err != nil {
		return fmt.Errorf("no credentials for %s%s: %w", c.place, looked, err)
	}
	return nil
}

// New makes a client with the given credentials.
func New(p Place, c aws.CredentialsProvider) *Client {
	if p.Region == "" {
		p.Region = "us-east-1"
	}
	if p.Endpoint == "" {
		p.Endpoint = "https://s3." + p.Region + ".amazonaws.com"
	}
	base := p.Endpoint + "/" + p.Bucket
	if p.HostStyle {
		scheme, host, _ := strings.Cut(p.Endpoint, "://")
		base = scheme + "://" + p.Bucket + "." + host
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.MaxIdleConnsPerHost, transport.DisableCompression = headWait, 16, true
	uploads := transport.Clone()
	uploads.ResponseHeaderTimeout = 0
	return &Client{
		place: p, base: base, credentials: c, http: newHTTP(transport), uploads: newHTTP(uploads),
		signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		pause:  pause,
	}
}

func newHTTP(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// String returns the place as a URL without parameters.
func (p Place) String() string { return strings.TrimRight("s3://"+p.Bucket+"/"+p.Prefix, "/") }

// Place returns the place of the client's objects.
func (c *Client) Place() Place { return c.place }

// pause waits between attempts, longer each time: 0.2, 0.8, 3.2 seconds.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-time.After(200 * time.Millisecond << (2 * attempt)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Error is a refusal of the store. It wraps fs.ErrNotExist if the object does not exist.
type Error struct {
	What          string // the operation
	Status        int
	Code, Message string // from the store; empty: none given
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: the object store answers %d", e.What, e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap implements errors.Is. A bucket that does not exist is another error than an object that does not.
func (e *Error) Unwrap() error {
	if e.Status == http.StatusNotFound && (e.Code == "" || e.Code == "NoSuchKey" || e.Code == "NotFound") {
		return fs.ErrNotExist
	}
	return nil
}

// Failure means that a request got no answer or a broken one. It is unknown whether the store executed it, which does no harm with any of these operations.
type Failure struct {
	What  string // the operation
	Cause error
}

func (f *Failure) Error() string { return f.What + ": " + f.Cause.Error() }

// Unwrap implements errors.Is.
func (f *Failure) Unwrap() error { return f.Cause }

// IsFault reports whether an error comes from the store or from the network to it.
func IsFault(err error) bool {
	_, refused := errors.AsType[*Error](err)
	_, failed := errors.AsType[*Failure](err)
	return refused || failed
}

// Again reports whether another attempt may succeed.
func Again(err error) bool { return IsFault(err) && again(err) }

// again is Again for an error of an attempt.
func again(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
	}
	return true // the connection broke, or the store is silent
}

// Info describes an object.
type Info struct {
	Key      string // without the prefix
	Size     int64
	Modified time.Time
}

// Put stores an object. The object is complete and durable once Put returns; until then it is unchanged. Each attempt reads size bytes of content from the beginning;
// sum is their SHA-256.
func (c *Client) Put(ctx context.Context, key string, content io.ReaderAt, size int64, sum [sha256.Size]byte) error {
	wait := headWait + time.Duration(min(size, heldMax)/slowest)*time.Second
	return c.try(ctx, "put "+key, func(ctx context.Context, timer *time.Timer) error {
		timer.Reset(wait)
		body := io.NopCloser(&watched{io.NewSectionReader(content, 0, size), timer, wait}) // a new reader for each attempt: HTTP may still read that of an earlier attempt that was answered early
		header := http.Header{"Content-Type": {"application/octet-stream"}}
		c.encrypt(header)
		answer, err := c.ask(ctx, http.MethodPut, key, nil, header, body, size, hex.EncodeToString(sum[:]))
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// encrypt asks the store to encrypt an object as the place says. A copy needs it as well: S3 encrypts a copy as the bucket says, and not as the original.
func (c *Client) encrypt(header http.Header) {
	if c.place.Encryption != "" {
		header.Set("X-Amz-Server-Side-Encryption", c.place.Encryption)
	}
	if c.place.EncryptionKey != "" {
		header.Set("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", c.place.EncryptionKey)
	}
}

// PutBytes is Put of bytes in memory.
func (c *Client) PutBytes(ctx context.Context, key string, content []byte) error {
	return c.Put(ctx, key, bytes.NewReader(content), int64(len(content)), sha256.Sum256(content))
}

// Get returns an object of at most the given number of bytes.
func (c *Client) Get(ctx context.Context, key string, most int64) (content []byte, err error) {
	err = c.try(ctx, "get "+key, func(ctx context.Context, timer *time.Timer) error {
		answer, err := c.ask(ctx, http.MethodGet, key, nil, nil, nil, 0, emptySum)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err = io.ReadAll(io.LimitReader(&watched{answer.Body, timer, bodyWait}, most+1))
		if err == nil && int64(len(content)) > most {
			err = &Error{What: "get " + key, Status: http.StatusOK, Message: fmt.Sprintf("the object has more than %d bytes", most)}
		}
		return err
	})
	return content, err
}

// Open returns the answer to a GET, whose body the caller reads and closes. asked is the value of the Range header; empty: none. It makes one attempt, and ends with ctx.
func (c *Client) Open(ctx context.Context, key, asked string) (*http.Response, error) {
	header := http.Header{}
	if asked != "" {
		header.Set("Range", asked)
	}
	answer, err := c.ask(ctx, http.MethodGet, key, nil, header, nil, 0, emptySum)
	if refused, ok := errors.AsType[*Error](err); ok {
		refused.What = "get " + key + " in " + c.place.String()
	}
	return answer, err
}

// Head describes an object.
func (c *Client) Head(ctx context.Context, key string) (info Info, err error) {
	err = c.try(ctx, "head "+key, func(ctx context.Context, _ *time.Timer) error {
		answer, err := c.ask(ctx, http.MethodHead, key, nil, nil, nil, 0, emptySum)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		modified, err := http.ParseTime(answer.Header.Get("Last-Modified"))
		info = Info{Key: key, Size: answer.ContentLength, Modified: modified}
		return err
	})
	return info, err
}

// Touch makes an object appear new to the store: it copies the object to itself.
func (c *Client) Touch(ctx context.Context, key string) error {
	return c.try(ctx, "touch "+key, func(ctx context.Context, _ *time.Timer) error {
		header := http.Header{
			"Content-Type": {"application/octet-stream"}, "X-Amz-Copy-Source": {"/" + c.place.Bucket + "/" + c.full(key)}, "X-Amz-Metadata-Directive": {"REPLACE"},
		}
		c.encrypt(header)
		answer, err := c.ask(ctx, http.MethodPut, key, nil, header, nil, 0, emptySum)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, errorMax))
		if err == nil && bytes.Contains(text, []byte("<Error>")) { // S3 may begin the answer before the copy is complete
			err = errorOf("touch "+key, http.StatusInternalServerError, text)
		}
		return err
	})
}

// Delete removes an object. It succeeds if the object does not exist.
func (c *Client) Delete(ctx context.Context, key string) error {
	err := c.try(ctx, "delete "+key, func(ctx context.Context, _ *time.Timer) error {
		answer, err := c.ask(ctx, http.MethodDelete, key, nil, nil, nil, 0, emptySum)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List calls f with all objects whose keys begin with below, page by page, and with the store's time.
func (c *Client) List(ctx context.Context, below string, f func(now time.Time, page []Info) error) error {
	for next := ""; ; {
		query := url.Values{"list-type": {"2"}, "prefix": {c.full(below)}}
		if next != "" {
			query.Set("continuation-token", next)
		}
		page, now, err := c.page(ctx, query)
		if err != nil {
			return err
		}
		infos := make([]Info, 0, len(page.Contents))
		for _, x := range page.Contents {
			infos = append(infos, Info{strings.TrimPrefix(x.Key, c.full("")), x.Size, x.LastModified})
		}
		if err := f(now, infos); err != nil {
			return err
		}
		if next = page.NextContinuationToken; !page.IsTruncated || next == "" {
			return nil
		}
	}
}

type listed struct {
	Contents []struct {
		Key          string
		Size         int64
		LastModified time.Time
	}
	IsTruncated           bool
	NextContinuationToken string
}

func (c *Client) page(ctx context.Context, query url.Values) (page listed, now time.Time, err error) {
	err = c.try(ctx, "list "+query.Get("prefix"), func(ctx context.Context, timer *time.Timer) error {
		answer, err := c.ask(ctx, http.MethodGet, "", query, nil, nil, 0, emptySum)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(&watched{answer.Body, timer, bodyWait}, listMax))
		if err != nil {
			return err
		}
		if now, err = http.ParseTime(answer.Header.Get("Date")); err != nil {
			return fmt.Errorf("read the time from the store's answer: %w", err)
		}
		page = listed{}
		return xml.Unmarshal(text, &page)
	})
	return page, now, err
}

// Check requests one page of a list, to find mistakes in bucket, credentials or endpoint.
func (c *Client) Check(ctx context.Context) error {
	_, _, err := c.page(ctx, url.Values{"list-type": {"2"}, "prefix": {c.full("")}, "max-keys": {"1"}})
	return err
}

func (c *Client) full(key string) string {
	if c.place.Prefix == "" {
		return key
	}
	return c.place.Prefix + "/" + key
}

var emptySum = func() string { sum := sha256.Sum256(nil); return hex.EncodeToString(sum[:]) }()

// errStalled is the cause with which an attempt without progress ends.
var errStalled = errors.New("the store made no progress for too long")

// watched is the body that an attempt sends or receives. Each part restarts the attempt's timer, so that a large object may take any time
// over a slow network.
type watched struct {
	io.Reader
	timer *time.Timer
	wait  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.timer.Reset(w.wait)
	}
	return n, err
}

// try makes several attempts if an error may be temporary. An attempt restarts its timer when it makes progress, and ends when the timer fires.
func (c *Client) try(ctx context.Context, what string, attempt func(context.Context, *time.Timer) error) error {
	for n := 0; ; n++ {
		one, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(bodyWait, func() { cancel(errStalled) })
		err := attempt(one, timer)
		timer.Stop()
		cancel(nil)
		if err == nil {
			return nil
		}
		if refused, ok := errors.AsType[*Error](err); ok {
			refused.What = what + " in " + c.place.String()
		} else {
			if context.Cause(one) == errStalled {
				err = errStalled
			}
			err = &Failure{what + " in " + c.place.String(), err}
		}
		if n+1 == attemptsMax || !again(err) || ctx.Err() != nil {
			return err
		}
		if c.pause(ctx, n) != nil {
			return err
		}
	}
}

// ask sends one request; an empty key means the bucket. It returns an answer only if the request succeeded.
func (c *Client) ask(ctx context.Context, method, key string, query url.Values, header http.Header, body io.ReadCloser, size int64, sum string) (*http.Response, error) {
	to, err := url.Parse(c.base)
	if err != nil {
		return nil, err
	}
	if key != "" {
		to.Path += "/" + c.full(key)
	} else if c.place.HostStyle {
		to.Path = "/"
	}
	to.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	r, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = size
	if size == 0 {
		r.Body = http.NoBody
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("X-Amz-Content-Sha256", sum)
	credentials, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	if err := c.signer.SignHTTP(ctx, credentials, r, sum, "s3", c.place.Region, time.Now()); err != nil {
		return nil, err
	}
	by := c.http
	if size > 0 {
		by = c.uploads
	}
	answer, err := by.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, errorMax)) // a part of the text is better than none
	return nil, errorOf("", answer.StatusCode, text)
}

func errorOf(what string, status int, text []byte) error {
	var says struct{ Code, Message string }
	_ = xml.Unmarshal(text, &says) // both stay empty if another program answered
	e := &Error{What: what, Status: status, Code: says.Code, Message: says.Message}
	if e.Code == "" && len(text) > 0 {
		e.Message = strconv.Quote(string(text[:min(len(text), 200)]))
	}
	return e
}
