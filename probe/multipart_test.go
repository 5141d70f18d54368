package probe

import (
	"strings"
	"testing"
)

// crlf turns the line ends of a test's text into those of the wire.
func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func TestB66_MultipartField(t *testing.T) {
	f := func(body, want string, fault Fault) {
		t.Helper()
		body = crlf(body)
		span, got := MultipartField([]byte(body), []byte("XX"), "model")
		if got != fault {
			t.Fatalf("unexpected fault for %q; got %v; want %v", body, got, fault)
		}
		if text := string(span.Of([]byte(body))); text != want {
			t.Fatalf("unexpected value in %q; got %q; want %q", body, text, want)
		}
	}
	const file = "--XX\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\nContent-Type: audio/wav\n\nRIFF\n--XY\n--\n\n"
	const model = "--XX\nContent-Disposition: form-data; name=\"model\"\n\nwhisper-1\n"
	const stream = "--XX\nContent-Disposition: form-data; name=\"stream\"\n\ntrue\n"
	const end = "--XX--\n"
	f(model+file+end, "whisper-1", FaultNone)
	f(file+stream+model+end, "whisper-1", FaultNone)
	f(file+model+"--XX--", "whisper-1", FaultNone)
	f(file+end, "", FaultNone)
	f("--XX--\n", "", FaultNone)
	f("--XX\nCONTENT-DISPOSITION:form-data;name=model\n\nm\n"+end, "m", FaultNone)
	f("--XX\nContent-Type: text/plain\nContent-Disposition: form-data; filename=\"x;y\\\"z\"; name=\"mo\\del\";\n\nm\n"+end, "", FaultNone)
	f("--XX\nContent-Disposition: form-data; name=\"model\"\n\n\n"+end, "", FaultNone)
	f("--XX\nContent-Disposition: form-data; name=\"model\"\n\na\nb\n\n"+end, "a\r\nb\r\n", FaultNone)
	f("--XX\nContent-Disposition: form-data; name=\"Model\"\n\nm\n"+end, "", FaultNone)
	f("--XX\nContent-Disposition: form-data; name=\"model2\"\n\nm\n"+end, "", FaultNone)
	f("--XX\nContent-Disposition: form-data; name=\"model\"\nContent-Transfer-Encoding: 8bit\n\nm\n"+end, "m", FaultNone)
	f("--XX\nContent-Disposition: form-data; name=\"model\"\n\n"+end, "", FaultSyntax)
	f(model+model+end, "", FaultDuplicate)
	f(model+file+"--XX\nContent-Disposition: form-data; name=\"model\"\n\n\n"+end, "", FaultDuplicate)
	f("", "", FaultSyntax)
	f("x"+model+end, "", FaultSyntax)
	f("\n"+model+end, "", FaultSyntax)
	f("--XX \n"+model+end, "", FaultSyntax)
	f("--XXX\n"+model+end, "", FaultSyntax)
	f(model, "", FaultTruncated)
	f(model+"--XX", "", FaultTruncated)
	f(model+"--XX-", "", FaultTruncated)
	f("--XX\nContent-Disposition: form-data; name=\"model\"", "", FaultTruncated)
	f(model+"--XX--\nx", "", FaultTrailing)
	f("--XX\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Type: text/plain\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: attachment; name=\"model\"\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\"model\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\"x\"; name=\"model\"\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\"x\"; name*=utf-8''model\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name*0=mod; name*1=el\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data;\n name=\"model\"\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition : form-data; name=\"model\"\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\"x\"\nContent-Disposition: form-data; name=\"model\"\n\nm\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\"model\"\nContent-Transfer-Encoding: base64\n\nbQ==\n"+end, "", FaultSyntax)
	f("--XX\nContent-Disposition: form-data; name=\"file\"\nContent-Transfer-Encoding: base64\n\nbQ==\n"+end, "", FaultNone)
}

func TestMultipartBareLineFeed(t *testing.T) {
	body := "--XX\nContent-Disposition: form-data; name=\"model\"\n\nm\n--XX--\n"
	if _, f := MultipartField([]byte(body), []byte("XX"), "model"); f != FaultSyntax {
		t.Errorf("unexpected fault: %v", f)
	}
	body = "--XX\r\nContent-Disposition: form-data; name=\"model\"\n\r\n\r\nm\r\n--XX--\r\n"
	if _, f := MultipartField([]byte(body), []byte("XX"), "model"); f != FaultSyntax {
		t.Errorf("unexpected fault: %v", f)
	}
}

func TestMultipartBoundary(t *testing.T) {
	for _, n := range []int{0, 71} {
		boundary := strings.Repeat("x", n)
		if _, f := MultipartField([]byte("--"+boundary+"--"), []byte(boundary), "model"); f != FaultSyntax {
			t.Errorf("unexpected fault for a boundary of %d bytes: %v", n, f)
		}
	}
}
