package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"mime"
	"net/http"
	"path"
	"strings"
)

// The scripts are those of htmx 2.0.11, its extension for event streams 2.2.4, idiomorph 0.7.4 and uPlot 1.6.32, as published; LICENSES.txt has their licences.
//
//go:embed static
var static embed.FS

// urls has the URL of each static file, which changes with its content.
var urls = func() map[string]string {
	all := map[string]string{}
	files, err := static.ReadDir("static")
	if err != nil {
		panic(err) // it is in the binary
	}
	for _, f := range files {
		content, err := static.ReadFile(path.Join("static", f.Name()))
		if err != nil {
			panic(err)
		}
		all[f.Name()] = Prefix + "/static/" + f.Name() + "?v=" + version(content)
	}
	return all
}()

func (d *Door) serveStatic(w http.ResponseWriter, r *http.Request) {
	if urls[r.PathValue("file")] == "" {
		http.NotFound(w, r)
		return
	}
	if r.URL.RequestURI() == urls[r.PathValue("file")] { // a node of another release may have made the page: it means a different version of this file
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		http.ServeFileFS(w, r, static, path.Join("static", r.PathValue("file")))
		return
	}
	zipped, kind := d.compressed(r.PathValue("file"))
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(zipped) // the browser has gone if it fails
}

// compressed returns a static file in gzip format, and its type. The file is compressed at the first request.
func (d *Door) compressed(name string) (zipped []byte, kind string) {
	kind = mime.TypeByExtension(path.Ext(name))
	if known, ok := d.zipped.Load(name); ok {
		return known.([]byte), kind
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	content, err := static.ReadFile(path.Join("static", name))
	if err != nil {
		panic(err) // it is in the binary
	}
	_, _ = z.Write(content) // to memory
	_ = z.Close()
	d.zipped.Store(name, b.Bytes())
	return b.Bytes(), kind
}
