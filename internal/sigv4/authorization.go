package sigv4

import (
	"cmp"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// signedHeadersMax is far above what clients sign, which is eight headers.
const signedHeadersMax = 64

// Authorization is a parsed Authorization header. All strings are parts of the header.
type Authorization struct {
	Credential
	SignedHeaders string // h1;h2
	Signature     string // hex
}

// Signs reports whether the signature covers a header, which is named in lower case.
func (a *Authorization) Signs(header string) bool {
	for name := range strings.SplitSeq(a.SignedHeaders, ";") {
		if name == header {
			return true
		}
	}
	return false
}

// ParseAuthorization parses
//
//	AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, SignedHeaders=<h1;h2>, Signature=<hex>
//
// and returns what is wrong with any other header.
func ParseAuthorization(header string) (a Authorization, problem string) {
	rest, ok := strings.CutPrefix(header, Algorithm)
	if !ok || rest == "" || rest[0] != ' ' {
		return a, "the Authorization header must start with " + Algorithm
	}
	var credential string
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, ",")
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			a.SignedHeaders = value
		case "Signature":
			a.Signature = value
		}
	}
	switch {
	case credential == "":
		return a, "the Authorization header requires 'Credential' parameter"
	case a.SignedHeaders == "":
		return a, "the Authorization header requires 'SignedHeaders' parameter"
	case len(a.Signature) != 64:
		return a, "the Authorization header requires 'Signature' parameter of 64 hexadecimal digits"
	case strings.Count(a.SignedHeaders, ";") >= signedHeadersMax:
		return a, "the Authorization header signs too many headers"
	}
	if a.Credential, ok = ParseCredential(credential); !ok || !PlainRegion(a.Region) {
		return a, "Credential must be " + CredentialForm
	}
	return a, ""
}

// PlainRegion reports whether a region name fits the pattern of ARNs. The service accepts any name of such characters.
func PlainRegion(region string) bool {
	if region == "" || len(region) > 32 {
		return false
	}
	for _, c := range []byte(region) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// headerKeys has the canonical keys of the headers that clients sign, so that they need not be computed.
var headerKeys = map[string]string{
	"accept":                "Accept",
	"amz-sdk-invocation-id": "Amz-Sdk-Invocation-Id",
	"amz-sdk-request":       "Amz-Sdk-Request",
	"content-type":          "Content-Type",
	"smithy-protocol":       "Smithy-Protocol",
	"x-amz-content-sha256":  "X-Amz-Content-Sha256",
	"x-amz-date":            "X-Amz-Date",
	"x-amz-security-token":  "X-Amz-Security-Token",
	"x-amz-target":          "X-Amz-Target",
	"x-amz-user-agent":      "X-Amz-User-Agent",
	"user-agent":            "User-Agent",
}

// AppendHeader appends the value of a header as it is signed; the name is in lower case.
func AppendHeader(dst []byte, r *http.Request, name string) []byte {
	switch name {
	case "host":
		return append(dst, r.Host...)
	case "content-length":
		return strconv.AppendInt(dst, r.ContentLength, 10)
	}
	key, ok := headerKeys[name]
	if !ok {
		key = textproto.CanonicalMIMEHeaderKey(name)
	}
	for i, value := range r.Header[key] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTrimmed(dst, value)
	}
	return dst
}

// appendTrimmed leaves out spaces at the ends and all but one of those in a row.
func appendTrimmed(dst []byte, value string) []byte {
	value = strings.TrimSpace(value)
	for i := range len(value) {
		if value[i] == ' ' && value[i-1] == ' ' {
			continue
		}
		dst = append(dst, value[i])
	}
	return dst
}

// AppendQuery appends a query as it is signed: its parameters in the order of their names, and then of their values.
func AppendQuery(dst []byte, query string) []byte {
	if query == "" {
		return dst
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if !strings.Contains(p, "=") {
			parameters[i] = p + "="
		}
	}
	slices.SortFunc(parameters, func(a, b string) int {
		nameA, valueA, _ := strings.Cut(a, "=")
		nameB, valueB, _ := strings.Cut(b, "=")
		return cmp.Or(strings.Compare(nameA, nameB), strings.Compare(valueA, valueB))
	})
	return append(dst, strings.Join(parameters, "&")...)
}
