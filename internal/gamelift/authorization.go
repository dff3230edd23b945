package gamelift

import (
	"strings"
	"time"
)

const (
	signatureAlgorithm = "AWS4-HMAC-SHA256"
	scopeTerminator    = "aws4_request"

	// signedHeadersMax is far above what clients sign, which is eight headers.
	signedHeadersMax = 64
)

// authorization is a taken apart Authorization header. All strings are parts of the header.
type authorization struct {
	keyID         string
	scope         string // date/region/service/aws4_request
	date          string // YYYYMMDD
	region        string
	service       string
	signedHeaders string // h1;h2
	signature     string // hex
}

// parseAuthorization takes apart
//
//	AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, SignedHeaders=<h1;h2>, Signature=<hex>
//
// and says what is wrong with another one.
func parseAuthorization(header string) (a authorization, problem string) {
	rest, ok := strings.CutPrefix(header, signatureAlgorithm)
	if !ok || rest == "" || rest[0] != ' ' {
		return a, "the Authorization header must start with " + signatureAlgorithm
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
			a.signedHeaders = value
		case "Signature":
			a.signature = value
		}
	}
	switch {
	case credential == "":
		return a, "the Authorization header requires 'Credential' parameter"
	case a.signedHeaders == "":
		return a, "the Authorization header requires 'SignedHeaders' parameter"
	case len(a.signature) != 64:
		return a, "the Authorization header requires 'Signature' parameter of 64 hexadecimal digits"
	case strings.Count(a.signedHeaders, ";") >= signedHeadersMax:
		return a, "the Authorization header signs too many headers"
	}
	return a, a.setCredential(credential)
}

// setCredential reads the credential from its end: a key id may hold slashes, a scope may not.
func (a *authorization) setCredential(credential string) (problem string) {
	const malformed = "Credential must be <key id>/<yyyymmdd>/<region>/<service>/" + scopeTerminator
	rest, ok := strings.CutSuffix(credential, "/"+scopeTerminator)
	if !ok {
		return malformed
	}
	if rest, a.service, ok = cutLast(rest); !ok {
		return malformed
	}
	if rest, a.region, ok = cutLast(rest); !ok {
		return malformed
	}
	if a.keyID, a.date, ok = cutLast(rest); !ok {
		return malformed
	}
	if a.keyID == "" || len(a.date) != len("20060102") || !plainRegion(a.region) || a.service == "" {
		return malformed
	}
	a.scope = credential[len(a.keyID)+1:]
	return ""
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// plainRegion keeps out of ARNs what would not fit their pattern. Any name of such characters is served.
func plainRegion(region string) bool {
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

// parseAmzDate reads YYYYMMDDTHHMMSSZ.
func parseAmzDate(s string) (time.Time, bool) {
	if len(s) != len("20060102T150405Z") || s[8] != 'T' || s[15] != 'Z' {
		return time.Time{}, false
	}
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[4:6])
	day, ok3 := digits(s[6:8])
	hour, ok4 := digits(s[9:11])
	minute, ok5 := digits(s[11:13])
	second, ok6 := digits(s[13:15])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return t, t.Day() == day || second == 60
}

func digits(s string) (n int, ok bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
