package gamelift

import (
	"strings"

	"github.com/musterhq/muster/internal/sigv4"
)

// signedHeadersMax is far above what clients sign, which is eight headers.
const signedHeadersMax = 64

// authorization is a parsed Authorization header. All strings are parts of the header.
type authorization struct {
	sigv4.Credential
	signedHeaders string // h1;h2
	signature     string // hex
}

// parseAuthorization parses
//
//	AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, SignedHeaders=<h1;h2>, Signature=<hex>
//
// and returns what is wrong with any other header.
func parseAuthorization(header string) (a authorization, problem string) {
	rest, ok := strings.CutPrefix(header, sigv4.Algorithm)
	if !ok || rest == "" || rest[0] != ' ' {
		return a, "the Authorization header must start with " + sigv4.Algorithm
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
	if a.Credential, ok = sigv4.ParseCredential(credential); !ok || !plainRegion(a.Region) {
		return a, "Credential must be " + sigv4.CredentialForm
	}
	return a, ""
}

// plainRegion reports whether a region name fits the pattern of ARNs. The service accepts any name of such characters.
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
