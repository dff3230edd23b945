package console

import (
	"embed"
	"net/http"
	"path"
)

// The scripts are those of htmx 2.0.11, its extension for event streams 2.2.4 and idiomorph 0.7.4, as published; LICENSES.txt has their licences.
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

func serveStatic(w http.ResponseWriter, r *http.Request) {
	if urls[r.PathValue("file")] == "" {
		http.NotFound(w, r)
		return
	}
	if r.URL.RequestURI() == urls[r.PathValue("file")] { // a node of another release may have made the page: this is not the file that it means
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, static, path.Join("static", r.PathValue("file")))
}
