package people

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
)

//go:embed pages
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// page is the content of a page.
type page struct {
	Title    string
	Ways     []Way
	Passkeys bool
	Why      string // there are no passkeys, if Passkeys is false
	Back     string
	Problem  string
}

// versions are parts of the URLs of static files, so that browsers can cache them until they change.
var versions = func() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"people.css", "people.js"} {
		content, err := staticFiles.ReadFile("static/" + name)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		all[name] = base64.RawURLEncoding.EncodeToString(sum[:6])
	}
	return all
}()

var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	functions := template.FuncMap{"static": func(name string) string { return Path + "/static/" + name + "?v=" + versions[name] }}
	for _, name := range []string{"sign-in", "enrol", "back"} {
		all[name] = template.Must(template.New("layout.html").Funcs(functions).ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html"))
	}
	return all
}()

func (d *Door) write(w http.ResponseWriter, r *http.Request, status int, name string, p *page) {
	var b bytes.Buffer
	if err := templates[name].Execute(&b, p); err != nil {
		d.log.Error("a page for signing in failed", "page", name, "path", r.URL.Path, "error", err)
		http.Error(w, "This page failed inside the service; the log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails if the client has gone
}

func (d *Door) serveStatic(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	if _, known := versions[name]; !known {
		http.NotFound(w, r)
		return
	}
	content, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	kind := "text/css; charset=utf-8"
	if strings.HasSuffix(name, ".js") {
		kind = "text/javascript; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content)
}
