"""A partner's SOAP service: its WSDL, 600 KB as such are, and prices. Whoever asks waits for the way to it, 5 ms."""
import socketserver
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

TYPES = "".join(
    f'<xsd:complexType name="Type{n}"><xsd:sequence>'
    + "".join(f'<xsd:element name="field{k}" type="xsd:string" minOccurs="0"/>' for k in range(12))
    + "</xsd:sequence></xsd:complexType>"
    for n in range(600))
WSDL = f"""<?xml version="1.0"?>
<definitions name="Prices" targetNamespace="urn:prices" xmlns:tns="urn:prices" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
 xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns="http://schemas.xmlsoap.org/wsdl/">
<types><xsd:schema targetNamespace="urn:prices">{TYPES}</xsd:schema></types>
<message name="question"><part name="article" type="xsd:string"/></message>
<message name="answer"><part name="price" type="xsd:int"/></message>
<portType name="PricesPort"><operation name="price"><input message="tns:question"/><output message="tns:answer"/></operation></portType>
<binding name="PricesBinding" type="tns:PricesPort"><soap:binding style="rpc" transport="http://schemas.xmlsoap.org/soap/http"/>
<operation name="price"><soap:operation soapAction="urn:prices#price"/><input><soap:body use="literal" namespace="urn:prices"/></input>
<output><soap:body use="literal" namespace="urn:prices"/></output></operation></binding>
<service name="Prices"><port name="PricesPort" binding="tns:PricesBinding"><soap:address location="http://10.77.0.1:8080/soap"/></port></service>
</definitions>""".encode()
ANSWER = b"""<?xml version="1.0"?><SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/" xmlns:ns1="urn:prices">
<SOAP-ENV:Body><ns1:priceResponse><price>1299</price></ns1:priceResponse></SOAP-ENV:Body></SOAP-ENV:Envelope>"""


class Partner(BaseHTTPRequestHandler):
    def reply(self, body):
        time.sleep(0.005)
        self.send_response(200)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(WSDL)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(ANSWER)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, HTTPServer):
    request_queue_size = 1024
    daemon_threads = True


Server(("", 8080), Partner).serve_forever()
