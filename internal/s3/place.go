package s3

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/musterhq/muster/internal/hostname"
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
	if u.Scheme == "http" && !hostname.IsLoopback(u.Hostname()) {
		return fmt.Errorf("endpoint %q: want https, because others on the network could read the content; plain http is for a store on this machine", p.Endpoint)
	}
	return nil
}

// String returns the place as a URL without parameters.
func (p Place) String() string { return strings.TrimRight("s3://"+p.Bucket+"/"+p.Prefix, "/") }
