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
	"net/http"
	"net/url"
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
	bodyWait    = 90 * time.Second // for the connection and the header together, and for the next bytes of an answer
	slowest     = 32 << 10         // bytes per second of an upload
	heldMax     = 4 << 20          // bytes of an upload that the system and a proxy buffer before they reach the store
	errorMax    = 16 << 10         // bytes that are read of an error
	listMax     = 4 << 20          // bytes of a page of a list
)

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

// Place returns the place of the client's objects.
func (c *Client) Place() Place { return c.place }

// Info describes an object.
type Info struct {
	Key      string // without the prefix
	Size     int64
	Modified time.Time
}

// Put stores an object. The object is complete and durable once Put returns; until then it is unchanged. Each attempt reads size bytes of content from the beginning;
// sum is their SHA-256.
func (c *Client) Put(ctx context.Context, key string, content io.ReaderAt, size int64, sum [sha256.Size]byte) error {
	return c.try(ctx, "put "+key, func(ctx context.Context, timer *time.Timer) error {
		body := io.NopCloser(&sending{Reader: io.NewSectionReader(content, 0, size), timer: timer}) // a new reader for each attempt: HTTP may still read that of an earlier attempt that was answered early
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

// ErrTooLarge is the error for an object with more bytes than its reader accepts.
var ErrTooLarge = errors.New("the object has more")

// Get returns an object of at most the given number of bytes. A larger one is ErrTooLarge.
func (c *Client) Get(ctx context.Context, key string, most int64) (content []byte, err error) {
	err = c.try(ctx, "get "+key, func(ctx context.Context, timer *time.Timer) error {
		answer, err := c.ask(ctx, http.MethodGet, key, nil, nil, nil, 0, emptySum)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err = io.ReadAll(io.LimitReader(&received{answer.Body, timer}, most+1))
		return err
	})
	if err == nil && int64(len(content)) > most {
		return nil, fmt.Errorf("get %s in %s: %w than %d bytes", key, c.place, ErrTooLarge, most)
	}
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
		if !page.IsTruncated {
			return nil
		}
		if next = page.NextContinuationToken; next == "" { // callers remove objects that nothing in a complete list needs
			return fmt.Errorf("list %s in %s: the store does not say where the list continues: it seems not to support ListObjectsV2", below, c.place)
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
		text, err := io.ReadAll(io.LimitReader(&received{answer.Body, timer}, listMax))
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
