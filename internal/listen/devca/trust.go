package devca

import "fmt"

// TrustText explains how to make game servers and tools trust the authority.
func (a *Authority) TrustText() string {
	return fmt.Sprintf(`The certificate above belongs to the development authority of this Muster installation.
It is kept in %[1]s; its key never leaves this machine. It is valid until %[2]s.

Which game servers need it:
  Go SDK with wss://      checks certificates fully; ws:// needs nothing
  C++ and Unreal SDKs     speak TLS always and check nothing
  C# and Unity SDKs       check nothing by default

Trust it for one program:
  Linux    SSL_CERT_FILE=%[1]s ./gameserver
  AWS CLI  AWS_CA_BUNDLE=%[1]s aws gamelift list-fleets …
  Node.js  NODE_EXTRA_CA_CERTS=%[1]s node …

Trust it on the whole machine:
  Debian, Ubuntu   sudo cp %[1]s /usr/local/share/ca-certificates/muster-dev.crt && sudo update-ca-certificates
  Fedora, RHEL     sudo trust anchor %[1]s
  macOS            sudo security add-trusted-cert -d -k /Library/Keychains/System.keychain %[1]s
  Windows          certutil -addstore Root %[1]s
`, a.certPath, a.cert.NotAfter.Format("2006-01-02"))
}
