// Routes of Go's net/http.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	for _, name := range []string{"login", "health", "free"} {
		text := name
		http.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) })
	}
	http.HandleFunc("/admin/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "admin") })
	http.HandleFunc("/users/", func(w http.ResponseWriter, r *http.Request) {
		if id := strings.TrimPrefix(r.URL.Path, "/users/"); id != "" && !strings.Contains(id, "/") {
			fmt.Fprintf(w, "users\n%s", id)
		}
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
